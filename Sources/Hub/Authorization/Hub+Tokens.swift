import Wire

/// New tokens of members, and the expiry of old ones (wire-protocol A6, A8).
extension Hub {
    /// Handles `access_token`. A good token gets no reply. A bad one ends the channel in a way that clients recover
    /// from. With an expired one the channel waits for a fresh one, because some clients send the token they have with
    /// each heartbeat.
    func accessToken(_ frame: ClientFrame, of membership: Membership) {
        guard case .json(let payload) = frame.body, let token = JoinConfig.token(payload["access_token"]) else {
            return
        }
        do throws(Refusal) {
            let claims = try verifier.verifyToken(token, at: context.now)
            if let bar = barRefusal(of: claims, from: membership.channel.key) {
                return expelMember(membership, bar, .revoked)
            }
            if let grants = membership.grants { return renewGrants(grants, as: claims, of: membership) }
            useClaims(claims, by: membership)
            resubscribe(membership, as: claims, afterLapse: resumeMember(membership))
        } catch {
            guard case .tokenExpired = error else { return expelMember(membership, error) }
            if membership.lapse == nil { endToken(of: membership, error) }
        }
    }

    /// Treats the member's token as expired, because the client says so, whatever token it had before.
    private func endToken(of membership: Membership, _ expired: Refusal) {
        membership.claims = membership.claims.ending(at: context.now)
        if let grants = membership.grants { authorization.forgetNewClaims(of: grants) }
        lapseOrExpel(membership, expired)
    }

    private func renewGrants(_ grants: ChannelGrants, as claims: Claims, of membership: Membership) {
        switch authorization.renewGrants(grants, as: claims, of: membership, &context) {
        case .asked: break
        case .takenBack: releaseWrites(of: membership)
        case .joinsAnew:
            useClaims(claims, by: membership)
            authorization.askToRead(membership, &context)
            resubscribe(membership, as: claims)
        }
    }

    /// Applies a new token that grants at least the previous read rights in a private channel.
    func applyRenewal(_ claims: Claims, of membership: Membership) {
        useClaims(claims, by: membership)
        // The check was requested by a backend or before the token expired: a good answer does not make the token good.
        guard claims.expiryRefusal(at: context.now) == nil else { return }
        let wasLapsed = resumeMember(membership)
        if membership.join.isJoined { showWhatMayBeRead(to: membership) }
        resubscribe(membership, as: claims, afterLapse: wasLapsed)
        releaseWrites(of: membership)
    }

    /// Starts delivering what a joined member may now read and did not receive until now.
    private func showWhatMayBeRead(to membership: Membership) {
        if membership.memberIndex == nil, membership.history?.index == nil, membership.mayRead(.broadcast) {
            letHear(membership, after: missedMessages(by: membership))
        }
        if membership.presence.watcherIndex == nil, membership.grants?.wantsPresence == true,
            membership.mayRead(.presence)
        {
            presence.showList(to: membership, &context)
        }
    }

    /// Makes a member act under another token.
    private func useClaims(_ claims: Claims, by membership: Membership) {
        membership.claims = claims
        history.renewSession(membership) {
            ClientTrace(renewing: $0, at: context.now, moment: catchUp.sessions.moment())
        }
        earliestExpiry = min(earliestExpiry, Int64(claims.expiresAt))
    }

    /// Moves a member's subscription to other claims if its token changed, or resumes it after a lapse. A new
    /// "Subscribed to PostgreSQL" follows, as in the original.
    private func resubscribe(_ membership: Membership, as claims: Claims, afterLapse wasLapsed: Bool = false) {
        defer { endFirstMoment(of: membership) }
        // The client has sent its token, so reports about its row changes are no longer held back.
        membership.firstTokenDue = nil
        let left = rows.changeClaims(membership, to: claims, &context)
        if left != nil { membership.isOwedState = false }
        guard left != nil || (wasLapsed && membership.rows != nil) else { return }
        catchUp.startAnew(membership, wasHearing: left?.groupIndex != nil, rows.progress, &context)
        handleEvent(.rowChangesRestarted(needsOfRowChanges(membership)), of: membership)
    }

    /// Ends channels whose token has expired, or suspends them until a fresh one arrives.
    ///
    /// Members are scanned only when the earliest expiry is due, so an idle hub scans none.
    func expireTokens() {
        guard context.now.unix / 1000 >= earliestExpiry else { return }
        earliestExpiry = .max
        for connection in context.openConnections {
            for membership in connection.memberships.reversed() {
                guard let expired = membership.claims.expiryRefusal(at: context.now) else {
                    earliestExpiry = min(earliestExpiry, Int64(membership.claims.expiresAt))
                    continue
                }
                lapseOrExpel(membership, expired)
            }
        }
    }

    private func lapseOrExpel(_ membership: Membership, _ expired: Refusal) {
        guard let end = endOfLapse(membership) else {
            // The member brought a fresh token, but its rights could not be determined.
            if let grants = membership.grants, grants.isUndecided,
                grants.newClaims?.expiryRefusal(at: context.now) == nil
            {
                return comeBack(membership)
            }
            return expelMember(membership, expired, isTold: membership.lapse != nil)
        }
        lapseMember(membership, expired)
        earliestExpiry = min(earliestExpiry, end)
    }

    /// Ends a channel with a reason, by `phx_error` rather than `phx_close`: every client treats a close as final, but
    /// rejoins after an error, and a fresh token is all that takes.
    ///
    /// - Parameter isTold: the client already knows why nothing arrives any more.
    func expelMember(
        _ membership: Membership, _ refusal: Refusal, _ end: MembershipEnd = .lost, isTold: Bool = false
    ) {
        authorization.refuseHeld(of: membership, refusal, &context)
        guard membership.connection.reader == nil else { return closeReaderChannel(membership, refusal, end) }
        if !isTold { context.sendSystemMessage(membership, extension: "system", ok: false, message: refusal.message) }
        removeMember(membership, end)
        membership.connection.isToRejoin = true
        let error = membership.frames.push(
            "phx_error", joinRef: membership.joinRef, ref: membership.joinRef, payload: refusal.ending)
        actions.append(.send(error, to: membership.slot))
    }
}
