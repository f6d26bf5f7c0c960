import Wire

/// Tokens on live channels (wire-protocol A8).
extension Hub {
    /// `access_token`: no reply when it is good. A bad one ends the channel in a way that clients come back from.
    func accessToken(_ frame: ClientFrame, of membership: Membership, at now: HubTime) {
        guard case .json(let payload) = frame.body, let token = JoinConfig.token(payload["access_token"]) else {
            return
        }
        do throws(Refusal) {
            let claims = try verifier.verify(token, at: now)
            if let pass = membership.pass { return renew(pass, as: claims, of: membership) }
            membership.claims = claims
            renewHistory(of: membership)
            earliestExpiry = min(earliestExpiry, Int64(claims.expiresAt))
            resubscribe(membership, as: claims)
        } catch {
            expel(membership, error)
        }
    }

    /// Ends channels whose token has run out.
    ///
    /// All members are looked at only when the earliest of their tokens is due, so an idle hub looks at none.
    func expireTokens(at now: HubTime) {
        guard now.unix / 1000 >= earliestExpiry else { return }
        earliestExpiry = .max
        for connection in connections.lazy.compactMap({ $0 }) {
            for membership in connection.memberships.reversed() {
                if let expired = membership.claims.expired(at: now) {
                    expel(membership, expired)
                } else {
                    earliestExpiry = min(earliestExpiry, Int64(membership.claims.expiresAt))
                }
            }
        }
    }

    /// Ends a channel with the reason. By `phx_error`, not `phx_close`: a close is final for every client, an error makes
    /// it join again, and a fresh token is all it takes.
    func expel(_ membership: Membership, _ refusal: Refusal, _ end: MembershipEnd = .lost) {
        refuseHeld(of: membership, refusal)
        context.system(membership, extension: "system", ok: false, message: refusal.message)
        remove(membership, end)
        let error = membership.frames.push(
            "phx_error", joinRef: membership.joinRef, ref: membership.joinRef, payload: refusal.ending)
        actions.append(.send(error, to: membership.slot))
    }
}
