import Wire

/// Rights and tokens: what members may read and write, and for how long (wire-protocol A4, A6 to A8, B).
extension Hub {
    package var openQuestions: [AuthorizationID] { Array(authorization.questions.keys) }
    /// Bytes of what waits for the policies.
    package var heldBytes: Int { authorization.heldBytes }

    /// The authority's word.
    package func authorization(_ id: AuthorizationID, is outcome: AuthorizationOutcome) {
        guard let (membership, decision) = authorization.take(outcome, to: id, &context) else { return }
        switch decision {
        case .reading(let event): handle(event, of: membership)
        case .renewed(let claims):
            adopt(claims, by: membership)
            if membership.join.isJoined { showWhatMayBeRead(to: membership) }
            resubscribe(membership, as: claims)
            releaseWrites(of: membership)
        case .revoked: expel(membership, .readRevoked(topic: String(membership.channel.key.name)), .revoked)
        case .writes: releaseWrites(of: membership)
        }
    }

    /// Gives a member whose join is answered what it may hear and has not heard until now.
    private func showWhatMayBeRead(to membership: Membership) {
        if membership.memberIndex == nil, membership.history?.index == nil, membership.mayRead(.broadcast) {
            letHear(membership, after: missedMessages(by: membership))
        }
        if membership.presence.watcherIndex == nil, membership.grants?.wantsPresence == true,
            membership.mayRead(.presence)
        {
            presence.show(to: membership, &context)
        }
    }

    // MARK: Writing

    /// What a member wants the others to hear: at once in a public channel, by the right to do so in a private one.
    func write(_ write: MemberWrite, ref: JSON, of membership: Membership) {
        guard let grants = membership.grants else { return perform(write, ref, of: membership) }
        switch authorization.admit(write, ref: ref, grants, of: membership, limits) {
        case .performed: perform(write, ref, of: membership)
        case .refused(let refusal): refuse(ref, of: membership, refusal)
        case .held: releaseWrites(of: membership)
        }
    }

    /// Performs or refuses what waits, in order, as far as it is decided.
    func releaseWrites(of membership: Membership) {
        while let (next, refusal) = authorization.nextWrite(of: membership, &context) {
            if let refusal {
                refuse(next.ref, of: membership, refusal)
            } else {
                perform(next.write, next.ref, of: membership)
            }
        }
    }

    private func perform(_ write: MemberWrite, _ ref: JSON, of membership: Membership) {
        switch write {
        case .broadcast(let message) where typing.consumes(message, of: membership, &context):
            guard membership.acknowledges, !ref.isNull else { return }
        case .broadcast(let message):
            deliver(message, in: membership.channel, except: membership.echoesToSelf ? nil : membership.slot)
            actions.append(.relay(.broadcast(membership.channel.key, message)))
            guard membership.acknowledges, !ref.isNull else { return }
        case .track(let payload):
            if presence.prepareToTrack(payload, of: membership, &context) { hearOthers() }
            do { try presence.track(payload, of: membership, &context) } catch {
                return refuse(ref, of: membership, error)
            }
        case .untrack:
            presence.withdraw(membership.presence.id, in: membership.channel, &context)
        }
        reply(to: ref, of: membership, ok: true)
    }

    // MARK: Tokens

    /// `access_token`: no reply when it is good. A bad one ends the channel in a way that clients come back from.
    func accessToken(_ frame: ClientFrame, of membership: Membership, at now: HubTime) {
        guard case .json(let payload) = frame.body, let token = JoinConfig.token(payload["access_token"]) else {
            return
        }
        do throws(Refusal) {
            let claims = try verifier.verify(token, at: now)
            if let grants = membership.grants { return renew(grants, as: claims, of: membership) }
            adopt(claims, by: membership)
            resubscribe(membership, as: claims)
        } catch {
            expel(membership, error)
        }
    }

    private func renew(_ grants: ChannelGrants, as claims: Claims, of membership: Membership) {
        switch authorization.renew(grants, as: claims, of: membership, &context) {
        case .asked: break
        case .takenBack: releaseWrites(of: membership)
        case .joinsAnew:
            adopt(claims, by: membership)
            authorization.askToRead(membership, &context)
            resubscribe(membership, as: claims)
        }
    }

    /// A member acts by another token from here on.
    private func adopt(_ claims: Claims, by membership: Membership) {
        membership.claims = claims
        renewHistory(of: membership)
        earliestExpiry = min(earliestExpiry, Int64(claims.expiresAt))
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
        authorization.refuseHeld(of: membership, refusal, &context)
        system(membership, extension: "system", ok: false, message: refusal.message)
        remove(membership, end)
        let error = membership.frames.push(
            "phx_error", joinRef: membership.joinRef, ref: membership.joinRef, payload: refusal.ending)
        actions.append(.send(error, to: membership.slot))
    }
}
