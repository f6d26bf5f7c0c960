import Wire

/// Private channels: what is asked of the policies, and what becomes of the answers (wire-protocol A4, A6 to A8, B).
///
/// A member that is not granted reading has no seat in any audience, so nothing can reach it.
extension Hub {
    /// Asks for a member; the answer comes by `authorization`.
    func ask(_ right: AuthorizationQuestion.Right, as claims: Claims, for membership: Membership) -> AuthorizationID {
        let id = AuthorizationID(loop: loop, serial: nextSerial())
        questions[id] = membership
        let topic = String(membership.channel.key.name)
        actions.append(.authorize(id, AuthorizationQuestion(claims: claims, topic: topic, right: right)))
        return id
    }

    /// The authority's word. One that comes after the member left, rejoined or brought another token changes nothing.
    package func authorization(_ id: AuthorizationID, is outcome: AuthorizationOutcome) {
        guard let membership = questions.removeValue(forKey: id), !membership.hasEnded, let pass = membership.pass
        else { return }
        guard pass.readQuestion == id else { return writeDecided(id, outcome, pass, of: membership) }
        pass.readQuestion = nil
        switch outcome {
        case .unavailable: refuseReading(of: membership, .databaseUnavailable)
        case .replayFailed: refuseReading(of: membership, .replayFailed)
        case .decided(let read, let replay):
            if pass.read == nil {
                joinDecided(read, replay, pass, of: membership)
            } else {
                tokenDecided(read, pass, of: membership)
            }
        }
    }

    /// Asks, at a join, what the member may read.
    func askToRead(_ membership: Membership) {
        guard let pass = membership.pass else { return }
        if pass.replay != nil, !membership.channel.awaitingReplay.contains(where: { $0 === membership }) {
            membership.channel.awaitingReplay.append(membership)
        }
        pass.readQuestion = ask(.read(replay: pass.replay?.request), as: membership.claims, for: membership)
    }

    private func joinDecided(
        _ read: ChannelExtensions, _ replay: [ReplayedMessage], _ pass: ChannelPass, of membership: Membership
    ) {
        // A replay to who may not read broadcasts is refused, as in the original, not left out.
        guard !read.isEmpty, pass.replay == nil || read.contains(.broadcast) else {
            return refuseReading(of: membership, .unauthorized(topic: String(membership.channel.key.name)))
        }
        pass.read = read
        pass.replay?.messages = replay
        completeJoin(of: membership)
    }

    // MARK: New tokens

    /// A new token on a private channel: what it may read is asked first. Until then the member keeps what it has, as
    /// long as its old token is valid; its writes wait, to be judged by the new one.
    func renew(_ pass: ChannelPass, as claims: Claims, of membership: Membership) {
        guard claims != (pass.newClaims ?? membership.claims) else { return }
        forgetQuestions(of: pass)
        pass.write = WriteRights()
        guard pass.read != nil else {
            // The join itself is not decided: it is asked anew, for this token.
            membership.claims = claims
            renewHistory(of: membership)
            earliestExpiry = min(earliestExpiry, Int64(claims.expiresAt))
            askToRead(membership)
            return resubscribe(membership, as: claims)
        }
        pass.newClaims = claims == membership.claims ? nil : claims
        if pass.newClaims == nil { return releaseWrites(of: membership) }
        pass.readQuestion = ask(.read(replay: nil), as: claims, for: membership)
    }

    /// A right that is lost ends the channel, as in the original; the client joins again and gets what is left.
    private func tokenDecided(_ read: ChannelExtensions, _ pass: ChannelPass, of membership: Membership) {
        guard let claims = pass.newClaims, let before = pass.read else { return }
        guard read.isSuperset(of: before) else {
            return expel(membership, .readRevoked(topic: String(membership.channel.key.name)), .revoked)
        }
        pass.read = read
        pass.newClaims = nil
        membership.claims = claims
        renewHistory(of: membership)
        earliestExpiry = min(earliestExpiry, Int64(claims.expiresAt))
        if membership.pending == nil { seat(membership) }
        resubscribe(membership, as: claims)
        releaseWrites(of: membership)
    }

    /// Gives a member whose join is answered the places that it may have and has not.
    func seat(_ membership: Membership) {
        if membership.memberSeat == nil, membership.history?.seat == nil, membership.mayRead(.broadcast) {
            takeMemberSeat(membership, after: missedMessages(by: membership))
        }
        if membership.presence.watcherIndex == nil, membership.pass?.wantsPresence == true, membership.mayRead(.presence) {
            presence.show(to: membership, &context)
        }
    }

    // MARK: Refusals

    /// Ends a join that waits for its answer, or a channel whose new token cannot be judged.
    private func refuseReading(of membership: Membership, _ refusal: Refusal) {
        if membership.pending != nil, membership.pass?.read == nil {
            refuseJoin(of: membership, refusal)
        } else {
            expel(membership, refusal)
        }
    }

    private func forgetQuestions(of pass: ChannelPass) {
        for id in pass.write.questions + [pass.readQuestion].compactMap({ $0 }) { questions[id] = nil }
        pass.readQuestion = nil
    }

    /// Takes a member's pass out of all lists.
    func discard(_ pass: ChannelPass, of membership: Membership) {
        forgetQuestions(of: pass)
        heldBytes -= pass.held.bytes
        endReplay(pass, of: membership)
    }
}

extension Membership {
    /// Everybody reads all of a public channel.
    func mayRead(_ part: ChannelExtensions) -> Bool {
        guard let pass else { return true }
        return pass.read?.contains(part) ?? false
    }
}
