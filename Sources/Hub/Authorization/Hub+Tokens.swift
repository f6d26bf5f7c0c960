import Wire

/// Tokens: new ones of members, and the end of old ones (wire-protocol A6, A8).
extension Hub {
    /// `access_token`: no reply when it is good. A bad one ends the channel in a way that clients come back from; with one that has
    /// run out the channel waits for a fresh one, because some clients send with each heartbeat what they have.
    func accessToken(_ frame: ClientFrame, of membership: Membership) {
        guard case .json(let payload) = frame.body, let token = JoinConfig.token(payload["access_token"]) else {
            return
        }
        do throws(Refusal) {
            let claims = try verifier.verify(token, at: context.now)
            if let bar = bar(of: claims, from: membership.channel.key) { return expel(membership, bar, .revoked) }
            if let grants = membership.grants { return renew(grants, as: claims, of: membership) }
            adopt(claims, by: membership)
            resubscribe(membership, as: claims, afterLapse: resume(membership))
        } catch {
            guard case .tokenExpired = error else { return expel(membership, error) }
            if membership.lapse == nil { endToken(of: membership, error) }
        }
    }

    /// A member says that its token is one that has run out, whatever it had before.
    private func endToken(of membership: Membership, _ expired: Refusal) {
        membership.claims = membership.claims.ending(at: context.now)
        if let grants = membership.grants { authorization.forgetNewClaims(of: grants) }
        lapseOrExpel(membership, expired)
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

    /// A private channel's policies let a member read with its new token no less than before.
    func renewed(_ claims: Claims, of membership: Membership) {
        adopt(claims, by: membership)
        // Asked for by a backend, or before the token ran out: a good answer makes no good token.
        guard claims.expired(at: context.now) == nil else { return }
        let wasLapsed = resume(membership)
        if membership.join.isJoined { showWhatMayBeRead(to: membership) }
        resubscribe(membership, as: claims, afterLapse: wasLapsed)
        releaseWrites(of: membership)
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

    /// A member acts by another token from here on.
    private func adopt(_ claims: Claims, by membership: Membership) {
        membership.claims = claims
        history.renew(membership) { ClientTrace(renewing: $0, at: context.now, moment: catchUp.sessions.moment()) }
        earliestExpiry = min(earliestExpiry, Int64(claims.expiresAt))
    }

    /// Takes a member's subscription over to other claims, when its token changed, or lets it go on after a lapse. A new
    /// "Subscribed to PostgreSQL" follows, as in the original.
    private func resubscribe(_ membership: Membership, as claims: Claims, afterLapse wasLapsed: Bool = false) {
        defer { endFirstMoment(of: membership) }
        // From here on it is told what becomes of its row changes, as whoever it is now.
        membership.firstTokenDue = nil
        let left = rows.change(membership, to: claims, &context)
        if left != nil { membership.isOwedState = false }
        guard left != nil || (wasLapsed && membership.rows != nil) else { return }
        catchUp.startAnew(membership, wasHearing: left?.groupIndex != nil, rows.progress, &context)
        handle(.rowChangesRestarted(needsOfRowChanges(membership)), of: membership)
    }

    /// Ends channels whose token has run out, or has them wait for a fresh one.
    ///
    /// All members are looked at only when the earliest of their tokens is due, so an idle hub looks at none.
    func expireTokens() {
        guard context.now.unix / 1000 >= earliestExpiry else { return }
        earliestExpiry = .max
        for connection in context.openConnections {
            for membership in connection.memberships.reversed() {
                guard let expired = membership.claims.expired(at: context.now) else {
                    earliestExpiry = min(earliestExpiry, Int64(membership.claims.expiresAt))
                    continue
                }
                lapseOrExpel(membership, expired)
            }
        }
    }

    private func lapseOrExpel(_ membership: Membership, _ expired: Refusal) {
        guard let end = endOfLapse(membership) else {
            // It has brought a fresh one, of which nothing could be found out.
            if let grants = membership.grants, grants.isUndecided, grants.newClaims?.expired(at: context.now) == nil {
                return comeBack(membership)
            }
            return expel(membership, expired, isTold: membership.lapse != nil)
        }
        lapse(membership, expired)
        earliestExpiry = min(earliestExpiry, end)
    }

    /// Ends a channel with the reason. By `phx_error`, not `phx_close`: a close is final for every client, an error makes
    /// it join again, and a fresh token is all it takes.
    ///
    /// - Parameter isTold: the client was told already why nothing comes any more.
    func expel(
        _ membership: Membership, _ refusal: Refusal, _ end: MembershipEnd = .lost, isTold: Bool = false
    ) {
        authorization.refuseHeld(of: membership, refusal, &context)
        guard membership.connection.reader == nil else { return close(membership, refusal, end) }
        if !isTold { context.system(membership, extension: "system", ok: false, message: refusal.message) }
        remove(membership, end)
        membership.connection.isToRejoin = true
        let error = membership.frames.push(
            "phx_error", joinRef: membership.joinRef, ref: membership.joinRef, payload: refusal.ending)
        actions.append(.send(error, to: membership.slot))
    }
}
