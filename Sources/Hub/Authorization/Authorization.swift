package import Wire

/// Private channels: what is asked of the policies, and what becomes of the answers (wire-protocol A4, A6 to A8, B).
///
/// What one member may do is in its `ChannelGrants`. A member that is not let read is in no audience, so that nothing
/// can reach it.
package struct Authorization {
    /// What the authority was asked and has not answered, and for whom.
    package private(set) var questions: [AuthorizationID: Membership] = [:]
    /// Bytes of what waits for its answers, of all members: writes, and messages that come while a replay is read.
    package internal(set) var heldBytes = 0
    /// Members whose new tokens the policies could not be asked about, and when they are asked again, in monotonic milliseconds.
    private var undecided: [Membership] = []
    private var undecidedDue: Int64 = 0
    private static let undecidedPause: Int64 = 2_000

    package init() {}

    /// What an answer means for the member that it is about.
    package enum Decision {
        /// Whether it may read: the join's machine says what follows.
        case reading(JoinMachine.Event)
        /// Its new token lets it read no less than the one before.
        case renewed(Claims)
        /// Its new token takes a right to read away.
        case revoked
        /// What it may do by now cannot be found out, and it is not certain that it may still do what it could.
        case unknown
        /// The policies are asked again about its new token; until its old one has ended it keeps what it has.
        case waits
        /// Writes that wait can go on.
        case writes
    }

    /// Asks for a member; the answer comes by `take`.
    private mutating func ask(
        _ right: AuthorizationQuestion.Right, as claims: Claims, for membership: Membership, _ hub: inout HubContext
    ) -> AuthorizationID {
        let id = AuthorizationID(loop: hub.loop, serial: hub.nextSerial())
        questions[id] = membership
        let topic = String(membership.channel.key.name)
        hub.actions.append(.authorize(id, AuthorizationQuestion(claims: claims, topic: topic, right: right)))
        return id
    }

    /// The authority's answer. One that comes after the member left, joined again or brought another token changes nothing.
    package mutating func take(
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
        grants.readQuestion = ask(.read(replay: grants.replay?.request), as: membership.claims, for: membership, &hub)
    }

    private func decideJoin(
        _ read: ChannelExtensions, _ replay: [ReplayedMessage], _ grants: ChannelGrants, of membership: Membership
    ) -> JoinMachine.Event {
        // A replay to who may not read broadcasts is refused, as in the original, not left out.
        guard !read.isEmpty, grants.replay == nil || read.contains(.broadcast) else {
            return .failed(.authorization, .unauthorized(topic: String(membership.channel.key.name)))
        }
        grants.read = read
        grants.replay?.messages = replay
        return .met(.authorization)
    }

    package enum Renewal {
        /// It says what the one before said, or what is to be found out is asked; the member keeps what it has until then,
        /// as long as its old token is valid. Its writes wait, to be judged by the new one.
        case asked
        /// It is the token that the member had before another, which is not asked about any more.
        case takenBack
        /// The join itself is not decided: it is to be asked anew, for this token.
        case joinsAnew
    }

    /// A new token on a private channel: what it may read is asked first.
    package mutating func renew(
        _ grants: ChannelGrants, as claims: Claims, of membership: Membership, _ hub: inout HubContext
    ) -> Renewal {
        // After a lapse the same token is asked for, too: what it may do may be less by now.
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
        grants.readQuestion = ask(.read(replay: nil), as: claims, for: membership, &hub)
        return .asked
    }

    /// Forgets what a new token may do, in whose place another came that is worth nothing.
    mutating func forgetNewClaims(of grants: ChannelGrants) {
        guard grants.newClaims != nil else { return }
        forgetQuestions(of: grants)
        grants.newClaims = nil
    }

    /// Asks anew what a member may do, as whoever it is by now. Until that is decided it keeps what it has, and its writes wait.
    mutating func refresh(_ grants: ChannelGrants, of membership: Membership, _ hub: inout HubContext) {
        forgetQuestions(of: grants)
        grants.write = WriteRights()
        guard grants.read != nil else { return askToRead(membership, &hub) }
        let claims = grants.newClaims ?? membership.claims
        grants.newClaims = claims
        grants.readQuestion = ask(.read(replay: nil), as: claims, for: membership, &hub)
    }

    /// Asks again about tokens of which nothing could be found out. To be called once a second.
    mutating func askAgain(_ hub: inout HubContext) {
        guard !undecided.isEmpty, hub.now.monotonic >= undecidedDue else { return }
        let members = undecided
        undecided = []
        for membership in members where !membership.join.hasEnded {
            guard let grants = membership.grants, grants.newClaims != nil, grants.readQuestion == nil else { continue }
            refresh(grants, of: membership, &hub)
        }
    }

    /// A right that is lost ends the channel, as in the original; the client joins again and gets what is left.
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
        /// It waits for a decision; what can go on is to be looked at (`nextWrite`).
        case held
    }

    /// Whether a member of a private channel may write something now.
    package mutating func admit(
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
        // The first is always kept, as it is no larger than a payload may be.
        guard grants.held.entries.count < limits.heldPerMember, heldBytes + entry.bytes <= limits.heldBytes,
            grants.held.isEmpty || grants.held.bytes + entry.bytes <= limits.payloadBytes
        else { return .refused(.writesPending) }
        grants.held.append(entry)
        heldBytes += entry.bytes
        return .held
    }

    /// The next of a member's writes that is decided, and why it is refused if it is; asks for what an undecided one
    /// needs.
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
                grants.write[need] = .asked(ask(.write(need), as: membership.claims, for: membership, &hub))
            }
            return nil
        case .allowed, .denied:
            grants.held.removeFirst()
            heldBytes -= next.bytes
            return (next, right == .denied ? grants.denial(of: next.write, topic: membership.channel.key.name) : nil)
        }
    }

    /// Notes an answer about writing; false for one that nobody waits for.
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
            // Nothing is known, so the next write asks again.
            grants.write[need] = .unknown
            refuseHeld(of: membership, .databaseUnavailable, needing: need, &hub)
        }
        return true
    }

    /// Refuses writes that wait and will never be performed.
    package mutating func refuseHeld(
        of membership: Membership, _ refusal: Refusal, needing need: ChannelExtensions? = nil, _ hub: inout HubContext
    ) {
        guard let grants = membership.grants else { return }
        for entry in grants.held.removeAll(needing: need) {
            heldBytes -= entry.bytes
            hub.refuse(entry.write.kind, entry.ref, of: membership, refusal)
        }
    }

    // MARK: Ends

    private mutating func forgetQuestions(of grants: ChannelGrants) {
        for id in grants.write.questions + [grants.readQuestion].compactMap({ $0 }) { questions[id] = nil }
        grants.readQuestion = nil
    }

    /// Forgets all that waits for a member that is not in the channel any more.
    package mutating func end(of membership: Membership) {
        guard let grants = membership.grants else { return }
        forgetQuestions(of: grants)
        heldBytes -= grants.held.bytes
        endReplay(grants, of: membership)
    }
}
