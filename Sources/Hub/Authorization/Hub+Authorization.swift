import Wire

/// Private channels: what is asked of the policies, and what becomes of the answers (wire-protocol A4, A6 to A8, B).
///
/// A member that is not granted reading has no seat in any audience, so nothing can reach it.
extension Hub {
    /// Asks for a member; the answer comes by `authorization`.
    func ask(_ right: AuthorizationQuestion.Right, as claims: Claims, for membership: Membership) -> AuthorizationID {
        let id = AuthorizationID(loop: loop, serial: context.nextSerial())
        questions[id] = membership
        let topic = String(membership.channel.key.name)
        actions.append(.authorize(id, AuthorizationQuestion(claims: claims, topic: topic, right: right)))
        return id
    }

    /// The authority's word. One that comes after the member left, rejoined or brought another token changes nothing.
    package func authorization(_ id: AuthorizationID, is outcome: AuthorizationOutcome) {
        guard let membership = questions.removeValue(forKey: id), !membership.join.hasEnded, let pass = membership.pass
        else { return }
        guard pass.readQuestion == id else { return writeDecided(id, outcome, pass, of: membership) }
        pass.readQuestion = nil
        switch outcome {
        case .unavailable: handle(.failed(.authorization, .databaseUnavailable), of: membership)
        case .replayFailed: handle(.failed(.authorization, .replayFailed), of: membership)
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
            let refusal = Refusal.unauthorized(topic: String(membership.channel.key.name))
            return handle(.failed(.authorization, refusal), of: membership)
        }
        pass.read = read
        pass.replay?.messages = replay
        handle(.met(.authorization), of: membership)
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
        if membership.join.isJoined { seat(membership) }
        resubscribe(membership, as: claims)
        releaseWrites(of: membership)
    }

    /// Gives a member whose join is answered the places that it may have and has not.
    func seat(_ membership: Membership) {
        if membership.memberSeat == nil, membership.history?.index == nil, membership.mayRead(.broadcast) {
            takeMemberSeat(membership, after: missedMessages(by: membership))
        }
        if membership.presence.watcherIndex == nil, membership.pass?.wantsPresence == true,
            membership.mayRead(.presence)
        {
            presence.show(to: membership, &context)
        }
    }

    // MARK: Ends

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

/// What members want the others to hear: at once in a public channel, by the right to do so in a private one.
extension Hub {
    func write(_ write: MemberWrite, ref: JSON, of membership: Membership) {
        guard let pass = membership.pass else { return perform(write, ref, of: membership) }
        if pass.held.isEmpty, pass.readQuestion == nil, membership.join.isJoined {
            switch write.need.map({ pass.write[$0] }) ?? .allowed {
            case .allowed: return perform(write, ref, of: membership)
            case .denied: return context.refuse(ref, of: membership, denial(of: write, in: membership))
            case .unknown, .asked: break
            }
        }
        let entry = HeldWrites.Entry(write: write.copied, ref: JSON(trusted: Array(ref.bytes)[...]))
        // The first is always kept, as it is no larger than a payload may be.
        guard pass.held.entries.count < limits.heldPerMember, heldBytes + entry.bytes <= limits.heldBytes,
            pass.held.isEmpty || pass.held.bytes + entry.bytes <= limits.payloadBytes
        else { return context.refuse(ref, of: membership, .writesPending) }
        pass.held.append(entry)
        heldBytes += entry.bytes
        releaseWrites(of: membership)
    }

    /// Performs or refuses what waits, in order, as far as it is decided; asks for what the next one needs.
    func releaseWrites(of membership: Membership) {
        guard let pass = membership.pass, membership.join.isJoined, pass.readQuestion == nil else { return }
        while let next = pass.held.first {
            switch next.write.need.map({ pass.write[$0] }) ?? .allowed {
            case .asked: return
            case .unknown:
                if let need = next.write.need {
                    pass.write[need] = .asked(ask(.write(need), as: membership.claims, for: membership))
                }
                return
            case .allowed:
                drop(next, of: pass)
                perform(next.write, next.ref, of: membership)
            case .denied:
                drop(next, of: pass)
                context.refuse(next.ref, of: membership, denial(of: next.write, in: membership))
            }
        }
    }

    private func drop(_ entry: HeldWrites.Entry, of pass: ChannelPass) {
        pass.held.removeFirst()
        heldBytes -= entry.bytes
    }

    func writeDecided(
        _ id: AuthorizationID, _ outcome: AuthorizationOutcome, _ pass: ChannelPass, of membership: Membership
    ) {
        guard let need = [ChannelExtensions.broadcast, .presence].first(where: { pass.write[$0] == .asked(id) }) else {
            return
        }
        if case .decided(let allowed, _) = outcome {
            pass.write[need] = allowed.contains(need) ? .allowed : .denied
        } else {
            // Nothing is known, so the next write asks again.
            pass.write[need] = .unknown
            refuseHeld(of: membership, .databaseUnavailable, needing: need)
        }
        releaseWrites(of: membership)
    }

    /// Answers writes that wait and will never be performed: nothing is dropped in silence.
    func refuseHeld(of membership: Membership, _ refusal: Refusal, needing need: ChannelExtensions? = nil) {
        guard let pass = membership.pass else { return }
        for entry in pass.held.removeAll(needing: need) {
            heldBytes -= entry.bytes
            context.refuse(entry.ref, of: membership, refusal)
        }
    }

    private func denial(of write: MemberWrite, in membership: Membership) -> Refusal {
        let topic = String(membership.channel.key.name)
        return write.need == .presence ? .trackUnauthorized(topic: topic) : .writeUnauthorized(topic: topic)
    }

    // MARK: Performing

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
                return context.refuse(ref, of: membership, error)
            }
        case .untrack:
            presence.withdraw(membership.presence.id, in: membership.channel, &context)
        }
        context.reply(to: ref, of: membership, ok: true)
    }
}
