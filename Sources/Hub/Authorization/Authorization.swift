package import Wire

/// Private channels: the questions put to the policies, and the consequences of their answers (wire-protocol A4, A6 to
/// A8, B).
///
/// A member's rights are in its `ChannelGrants`. A member that may not read is in no audience, so nothing can reach it.
package struct Authorization {
    /// Questions the authority has not answered yet, and the members they concern.
    package private(set) var questions: [AuthorizationID: Membership] = [:]
    /// Bytes held, for all members, until an answer comes: writes, and messages that arrive while a replay is read.
    package internal(set) var heldBytes = 0
    /// Members whose new tokens could not be put to the policies, and the time of the next attempt, in monotonic
    /// milliseconds.
    private var undecided: [Membership] = []
    private var undecidedDue: Int64 = 0
    private static let undecidedPause: Int64 = 2_000

    package init() {}

    /// The consequence of an answer for the member it concerns.
    package enum Decision {
        /// A join's read rights are decided; its state machine determines what follows.
        case reading(JoinMachine.Event)
        /// The new token grants at least the read rights of the previous one.
        case renewed(Claims)
        /// The new token takes away a right to read.
        case revoked
        /// The current rights cannot be determined, and the previous ones may no longer apply.
        case unknown
        /// The policies will be asked again about the new token; the member keeps its rights until the old token
        /// expires.
        case waits
        /// Held writes can proceed.
        case writes
    }

    /// Asks about a member's right; the answer arrives later.
    private mutating func askAuthority(
        _ right: AuthorizationQuestion.Right, as claims: Claims, for membership: Membership, _ hub: inout HubContext
    ) -> AuthorizationID {
        let id = AuthorizationID(loop: hub.loop, serial: hub.nextSerial())
        questions[id] = membership
        let topic = String(membership.channel.key.name)
        hub.actions.append(.authorize(id, AuthorizationQuestion(claims: claims, topic: topic, right: right)))
        return id
    }

    /// Handles the authority's answer. An answer that comes after the member left, rejoined or brought another token
    /// has no effect.
    package mutating func receiveAnswer(
        _ outcome: AuthorizationOutcome, to id: AuthorizationID, _ hub: inout HubContext
    ) -> (Membership, Decision)? {
        guard let membership = questions.removeValue(forKey: id), !membership.join.hasEnded,
            let grants = membership.grants
        else { return nil }
        guard grants.readQuestion == id else {
            return decideWrite(id, outcome, grants, of: membership, &hub) ? (membership, .writes) : nil
        }
        grants.readQuestion = nil
        switch outcome {
        case .unavailable where membership.join.isJoined && membership.connection.reader == nil:
            guard let new = grants.newClaims, new != membership.claims else { return (membership, .unknown) }
            if undecided.isEmpty { undecidedDue = hub.now.monotonic + Self.undecidedPause }
            undecided.append(membership)
            grants.isUndecided = true
            return (membership, .waits)
        case .unavailable: return (membership, .reading(.failed(.authorization, .databaseUnavailable)))
        case .replayFailed: return (membership, .reading(.failed(.authorization, .replayFailed)))
        case .decided(let read, let replay):
            guard let before = grants.read else {
                return (membership, .reading(decideJoin(read, replay, grants, of: membership)))
            }
            return decideToken(read, before, grants).map { (membership, $0) }
        case .failed(let fault):
            guard let before = grants.read else {
                return (membership, .reading(.failed(.authorization, .channelPolicyFailed(fault))))
            }
            return decideToken([], before, grants).map { (membership, $0) }
        }
    }

    // MARK: Reading

    /// Asks, at a join, what the member may read.
    package mutating func askToRead(_ membership: Membership, _ hub: inout HubContext) {
        guard let grants = membership.grants else { return }
        if grants.replay != nil { membership.channel.replays.beginWait(of: membership) }
        grants.readQuestion = askAuthority(
            .read(replay: grants.replay?.request), as: membership.claims, for: membership, &hub)
    }

    private func decideJoin(
        _ read: ChannelExtensions, _ replay: [ReplayedMessage], _ grants: ChannelGrants, of membership: Membership
    ) -> JoinMachine.Event {
        // Asking for a replay without the right to read broadcasts refuses the join, as in the original; it is not
        // ignored.
        guard !read.isEmpty, grants.replay == nil || read.contains(.broadcast) else {
            return .failed(.authorization, .unauthorized(topic: String(membership.channel.key.name)))
        }
        grants.read = read
        grants.replay?.messages = replay
        return .met(.authorization)
    }

    package enum Renewal {
        /// The token says the same as the previous one, or its rights have been asked for. Until the answer, the member
        /// keeps its rights as long as its old token is valid, and its writes are held to be judged by the new one.
        case asked
        /// The member returned to the token it had before; the question about the later one is dropped.
        case takenBack
        /// The join itself is undecided and must be asked about again with this token.
        case joinsAnew
    }

    /// Handles a new token on a private channel by first asking what it may read.
    package mutating func renewGrants(
        _ grants: ChannelGrants, as claims: Claims, of membership: Membership, _ hub: inout HubContext
    ) -> Renewal {
        // After a lapse the same token is asked about again, because its rights may have shrunk.
        let isLapsed = membership.lapse != nil
        guard claims != (grants.newClaims ?? (isLapsed ? nil : membership.claims)) else { return .asked }
        forgetQuestions(of: grants)
        grants.isUndecided = false
        grants.write = WriteRights()
        grants.faults = [:]
        guard grants.read != nil else { return .joinsAnew }
        guard claims != membership.claims || isLapsed else {
            grants.newClaims = nil
            return .takenBack
        }
        grants.newClaims = claims
        grants.readQuestion = askAuthority(.read(replay: nil), as: claims, for: membership, &hub)
        return .asked
    }

    /// Drops a pending new token, because a later token was worthless.
    mutating func forgetNewClaims(of grants: ChannelGrants) {
        guard grants.newClaims != nil else { return }
        forgetQuestions(of: grants)
        grants.newClaims = nil
    }

    /// Asks again what a member may do, under its newest claims. Until the answer, the member keeps its rights and its
    /// writes are held.
    mutating func refreshGrants(_ grants: ChannelGrants, of membership: Membership, _ hub: inout HubContext) {
        forgetQuestions(of: grants)
        grants.write = WriteRights()
        guard grants.read != nil else { return askToRead(membership, &hub) }
        let claims = grants.newClaims ?? membership.claims
        grants.newClaims = claims
        grants.readQuestion = askAuthority(.read(replay: nil), as: claims, for: membership, &hub)
    }

    /// Asks again about tokens whose rights could not be determined. Call once a second.
    mutating func askAgain(_ hub: inout HubContext) {
        guard !undecided.isEmpty, hub.now.monotonic >= undecidedDue else { return }
        let members = undecided
        undecided = []
        for membership in members where !membership.join.hasEnded {
            guard let grants = membership.grants, grants.newClaims != nil, grants.readQuestion == nil else { continue }
            refreshGrants(grants, of: membership, &hub)
        }
    }

    /// Ends the channel if a right was lost, as in the original; the client then rejoins with the rights that remain.
    private func decideToken(
        _ read: ChannelExtensions, _ before: ChannelExtensions, _ grants: ChannelGrants
    ) -> Decision? {
        guard let claims = grants.newClaims else { return nil }
        grants.isUndecided = false
        guard read.isSuperset(of: before) else { return .revoked }
        grants.read = read
        grants.newClaims = nil
        return .renewed(claims)
    }

    // MARK: Writing

    package enum Admission {
        case performed
        case refused(Refusal)
        /// The write awaits a decision; the caller should look for writes that can proceed (`nextWrite`).
        case held
    }

    /// Decides whether a member of a private channel may write now, or holds the write until that is known.
    package mutating func admitWrite(
        _ write: MemberWrite, ref: JSON, _ grants: ChannelGrants, of membership: Membership, _ limits: HubLimits
    ) -> Admission {
        if grants.held.isEmpty, grants.readQuestion == nil, membership.join.isJoined {
            switch grants.right(to: write) {
            case .allowed: return .performed
            case .denied: return .refused(grants.denial(of: write, topic: membership.channel.key.name))
            case .unknown, .asked: break
            }
        }
        let entry = HeldWrites.Entry(write: write.copied, ref: JSON(trusted: Array(ref.bytes)[...]))
        // The first write is always held, as it is no larger than a payload may be.
        guard grants.held.entries.count < limits.heldPerMember, heldBytes + entry.bytes <= limits.heldBytes,
            grants.held.isEmpty || grants.held.bytes + entry.bytes <= limits.payloadBytes
        else { return .refused(.writesPending) }
        grants.held.append(entry)
        heldBytes += entry.bytes
        return .held
    }

    /// Returns a member's next decided write, with a refusal if it is denied. If the next write is undecided, asks for
    /// the right it needs.
    package mutating func nextWrite(
        of membership: Membership, _ hub: inout HubContext
    ) -> (HeldWrites.Entry, Refusal?)? {
        guard let grants = membership.grants, membership.join.isJoined, grants.readQuestion == nil,
            let next = grants.held.first
        else { return nil }
        let right = grants.right(to: next.write)
        switch right {
        case .asked: return nil
        case .unknown:
            if let need = grants.openNeed(of: next.write) {
                grants.write[need] = .asked(askAuthority(.write(need), as: membership.claims, for: membership, &hub))
            }
            return nil
        case .allowed, .denied:
            grants.held.removeFirst()
            heldBytes -= next.bytes
            return (next, right == .denied ? grants.denial(of: next.write, topic: membership.channel.key.name) : nil)
        }
    }

    /// Records an answer about writing; returns false if no write was waiting for it.
    private mutating func decideWrite(
        _ id: AuthorizationID, _ outcome: AuthorizationOutcome, _ grants: ChannelGrants, of membership: Membership,
        _ hub: inout HubContext
    ) -> Bool {
        guard let need = WriteRights.all.first(where: { grants.write[$0] == .asked(id) })
        else {
            return false
        }
        if let allowed = outcome.extensions {
            grants.write[need] = allowed.isDisjoint(with: need) ? .denied : .allowed
            if case .failed(let fault) = outcome { grants.faults[need] = fault }
        } else {
            // The right is still unknown, so the next write asks again.
            grants.write[need] = .unknown
            refuseHeld(of: membership, .databaseUnavailable, needing: need, &hub)
        }
        return true
    }

    /// Refuses held writes that will never be performed.
    package mutating func refuseHeld(
        of membership: Membership, _ refusal: Refusal, needing need: ChannelExtensions? = nil, _ hub: inout HubContext
    ) {
        guard let grants = membership.grants else { return }
        for entry in grants.held.removeAll(needing: need) {
            heldBytes -= entry.bytes
            hub.refuseMessage(entry.write.kind, entry.ref, of: membership, refusal)
        }
    }

    // MARK: Ends

    private mutating func forgetQuestions(of grants: ChannelGrants) {
        for id in grants.write.questions + [grants.readQuestion].compactMap({ $0 }) { questions[id] = nil }
        grants.readQuestion = nil
    }

    /// Discards everything held for a member that has left the channel.
    package mutating func discardPending(of membership: Membership) {
        guard let grants = membership.grants else { return }
        forgetQuestions(of: grants)
        heldBytes -= grants.held.bytes
        endReplay(grants, of: membership)
    }
}
