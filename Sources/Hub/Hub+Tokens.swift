import Wire

/// Tokens on live channels (wire-protocol A8).
extension Hub {
    /// `access_token`: no reply when it is good. A bad one ends the channel in a way that clients come back from.
    func accessToken(_ frame: ClientFrame, from slot: Slot, membership index: Int, at now: HubTime) {
        guard case .json(let payload) = frame.body, let token = JoinConfig.token(payload["access_token"]) else {
            return
        }
        do throws(Refusal) {
            let claims = try verifier.verify(token, at: now)
            if let pass = connections[Int(slot)]?.memberships[index].pass {
                return renew(pass, as: claims, at: index, of: slot)
            }
            connections[Int(slot)]?.memberships[index].claims = claims
            if let membership = connections[Int(slot)]?.memberships[index] { renewHistory(of: membership) }
            earliestExpiry = min(earliestExpiry, Int64(claims.expiresAt))
            resubscribe(at: index, of: slot, as: claims)
        } catch {
            expel(at: index, of: slot, error)
        }
    }

    /// Ends channels whose token has run out.
    ///
    /// All members are looked at only when the earliest of their tokens is due, so an idle hub looks at none.
    func expireTokens(at now: HubTime) {
        guard now.unix / 1000 >= earliestExpiry else { return }
        earliestExpiry = .max
        for slot in connections.indices {
            guard let connection = connections[slot] else { continue }
            for index in connection.memberships.indices.reversed() {
                let claims = connection.memberships[index].claims
                if let expired = claims.expired(at: now) {
                    expel(at: index, of: Slot(slot), expired)
                } else {
                    earliestExpiry = min(earliestExpiry, Int64(claims.expiresAt))
                }
            }
        }
    }

    /// Ends a channel with the reason. By `phx_error`, not `phx_close`: a close is final for every client, an error makes
    /// it join again, and a fresh token is all it takes.
    func expel(at index: Int, of slot: Slot, _ refusal: Refusal, _ end: MembershipEnd = .lost) {
        guard let version = connections[Int(slot)]?.version,
            let membership = connections[Int(slot)]?.memberships[index]
        else { return }
        refuseHeld(at: index, of: slot, refusal)
        system(membership, slot, extension: "system", ok: false, message: refusal.message)
        removeMembership(at: index, of: slot, end)
        let error = membership.channel.frames(version).push(
            "phx_error", joinRef: membership.joinRef, ref: membership.joinRef, payload: refusal.ending)
        actions.append(.send(error, to: slot))
    }
}
