import Wire

/// Private channels: what is asked of the policies, and what becomes of the answers (wire-protocol A4, A6 to A8, B).
///
/// A member that is not granted reading has no seat in any audience, so nothing can reach it.
extension Hub {
    /// Asks for a member; the answer comes by `authorization`.
    func ask(_ right: AuthorizationQuestion.Right, as claims: Claims, for membership: Membership, _ slot: Slot)
        -> AuthorizationID
    {
        let id = AuthorizationID(loop: loop, serial: nextSerial())
        questions[id] = (slot, membership.member)
        let topic = String(membership.channel.key.name)
        actions.append(.authorize(id, AuthorizationQuestion(claims: claims, topic: topic, right: right)))
        return id
    }

    /// The authority's word. One that comes after the member left, rejoined or brought another token changes nothing.
    package func authorization(_ id: AuthorizationID, is outcome: AuthorizationOutcome) {
        guard let (slot, member) = questions.removeValue(forKey: id),
            let index = connections[Int(slot)]?.memberships.firstIndex(where: { $0.member == member }),
            let pass = connections[Int(slot)]?.memberships[index].pass
        else { return }
        guard pass.readQuestion == id else { return writeDecided(id, outcome, pass, at: index, of: slot) }
        pass.readQuestion = nil
        switch outcome {
        case .unavailable: refuseReading(at: index, of: slot, .databaseUnavailable)
        case .replayFailed: refuseReading(at: index, of: slot, .replayFailed)
        case .decided(let read, let replay):
            if pass.read == nil {
                joinDecided(read, replay, pass, at: index, of: slot)
            } else {
                tokenDecided(read, pass, at: index, of: slot)
            }
        }
    }

    /// Asks, at a join, what the member may read.
    func askToRead(at index: Int, of slot: Slot) {
        guard let membership = connections[Int(slot)]?.memberships[index], let pass = membership.pass else { return }
        if pass.replay != nil, !membership.channel.awaitingReplay.contains(slot) {
            membership.channel.awaitingReplay.append(slot)
        }
        pass.readQuestion = ask(.read(replay: pass.replay?.request), as: membership.claims, for: membership, slot)
    }

    private func joinDecided(
        _ read: ChannelExtensions, _ replay: [ReplayedMessage], _ pass: ChannelPass, at index: Int, of slot: Slot
    ) {
        guard let key = connections[Int(slot)]?.memberships[index].channel.key else { return }
        // A replay to who may not read broadcasts is refused, as in the original, not left out.
        guard !read.isEmpty, pass.replay == nil || read.contains(.broadcast) else {
            return refuseReading(at: index, of: slot, .unauthorized(topic: String(key.name)))
        }
        pass.read = read
        pass.replay?.messages = replay
        completeJoin(at: index, of: slot)
    }

    // MARK: New tokens

    /// A new token on a private channel: what it may read is asked first. Until then the member keeps what it has, as
    /// long as its old token is valid; its writes wait, to be judged by the new one.
    func renew(_ pass: ChannelPass, as claims: Claims, at index: Int, of slot: Slot) {
        guard let membership = connections[Int(slot)]?.memberships[index],
            claims != (pass.newClaims ?? membership.claims)
        else { return }
        forgetQuestions(of: pass)
        pass.write = WriteRights()
        guard pass.read != nil else {
            // The join itself is not decided: it is asked anew, for this token.
            membership.claims = claims
            renewHistory(of: membership)
            earliestExpiry = min(earliestExpiry, Int64(claims.expiresAt))
            askToRead(at: index, of: slot)
            return resubscribe(at: index, of: slot, as: claims)
        }
        pass.newClaims = claims == membership.claims ? nil : claims
        if pass.newClaims == nil { return releaseWrites(at: index, of: slot) }
        pass.readQuestion = ask(.read(replay: nil), as: claims, for: membership, slot)
    }

    /// A right that is lost ends the channel, as in the original; the client joins again and gets what is left.
    private func tokenDecided(_ read: ChannelExtensions, _ pass: ChannelPass, at index: Int, of slot: Slot) {
        guard let membership = connections[Int(slot)]?.memberships[index], let claims = pass.newClaims,
            let before = pass.read
        else { return }
        guard read.isSuperset(of: before) else {
            return expel(at: index, of: slot, .readRevoked(topic: String(membership.channel.key.name)), .revoked)
        }
        pass.read = read
        pass.newClaims = nil
        membership.claims = claims
        renewHistory(of: membership)
        earliestExpiry = min(earliestExpiry, Int64(claims.expiresAt))
        if membership.pending == nil { seat(at: index, of: slot) }
        resubscribe(at: index, of: slot, as: claims)
        releaseWrites(at: index, of: slot)
    }

    /// Gives a member whose join is answered the places that it may have and has not.
    func seat(at index: Int, of slot: Slot) {
        guard let membership = connections[Int(slot)]?.memberships[index] else { return }
        if membership.memberSeat == nil, membership.history?.seat == nil, membership.mayRead(.broadcast) {
            takeMemberSeat(at: index, of: slot, after: missedMessages(at: index, of: slot))
        }
        if membership.watcherSeat == nil, membership.pass?.wantsPresence == true, membership.mayRead(.presence) {
            showPresence(at: index, of: slot)
        }
    }

    // MARK: Refusals

    /// Ends a join that waits for its answer, or a channel whose new token cannot be judged.
    private func refuseReading(at index: Int, of slot: Slot, _ refusal: Refusal) {
        guard let membership = connections[Int(slot)]?.memberships[index] else { return }
        if membership.pending != nil, membership.pass?.read == nil {
            refuseJoin(at: index, of: slot, refusal)
        } else {
            expel(at: index, of: slot, refusal)
        }
    }

    private func forgetQuestions(of pass: ChannelPass) {
        for id in pass.write.questions + [pass.readQuestion].compactMap({ $0 }) { questions[id] = nil }
        pass.readQuestion = nil
    }

    /// Takes a member's pass out of all lists.
    func discard(_ pass: ChannelPass, of slot: Slot, in channel: Channel) {
        forgetQuestions(of: pass)
        heldBytes -= pass.held.bytes
        endReplay(pass, of: slot, in: channel)
    }
}

extension Membership {
    /// Everybody reads all of a public channel.
    func mayRead(_ part: ChannelExtensions) -> Bool {
        guard let pass else { return true }
        return pass.read?.contains(part) ?? false
    }
}
