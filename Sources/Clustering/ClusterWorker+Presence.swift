import Cluster
import Hub

/// Completes this hub's copies of other hubs' presences piece by piece, and answers hubs that do the same.
extension ClusterWorker {
    /// How long to wait for a piece, in milliseconds.
    private static var piecePatience: Int64 { 10_000 }
    /// The approximate size of an answer in bytes, and the bytes of answers that Redis may still have to take. The link
    /// is given up at 8 MiB.
    private static var pieceBytes: Int { 256 << 10 }
    private static var mostUntaken: Int { 1 << 20 }

    // MARK: Asking

    /// Completes this hub's copy of another hub's members. A transfer under way goes on.
    ///
    /// Only while this hub is in the log: an answer is placed after the messages that its sender had sent, which a hub
    /// that starts reading later never sees. Beats reveal later that a copy is missing.
    mutating func pullMembers(from hub: HubIdentity, at now: Instant) {
        guard pulls[hub] == nil, state.isInLog else { return }
        if askPresence(.digests, of: hub, at: now) { pulls[hub] = PresencePull() }
    }

    private mutating func askPresence(_ question: PresenceQuestion, of hub: HubIdentity, at now: Instant) -> Bool {
        let deadline = Self.milliseconds + Self.piecePatience
        guard let entered = peerQuestions.openQuestion([hub], until: deadline, for: .presence(of: hub)) else {
            return false
        }
        statistics.questions += 1
        for (hub, id) in entered {
            sendDirect(
                .question(id: id, subject: PeerSubject.presence.rawValue, question.encoded), to: hub, after: nil,
                at: now)
        }
        return true
    }

    /// - Parameter body: nil if there was no answer.
    mutating func takePresence(_ body: [UInt8]?, of hub: HubIdentity, at now: Instant) {
        guard var pull = pulls.removeValue(forKey: hub), let body else { return }
        var out: [ClusterState.Output] = []
        do {
            switch try pull.readAnswer(body, at: Self.milliseconds) {
            case nil: return
            case .digests(let hubs):
                for theirs in hubs where mayName(theirs.hub, hub) {
                    pull.compareDigests(theirs, with: state.digests(of: theirs.hub, in: theirs.pieces))
                }
            case .pieces(let boot, let pieces, let covered, let snapshot):
                guard pull.receivePieces(covered, of: boot, in: pieces), mayName(boot, hub) else { return }
                state.replaceCopy(boot, in: pieces, covered, by: snapshot, isOfDead: boot != hub.boot, &out)
            }
        } catch {
            reportUnreadable(hub, at: now)
        }
        performOutputs(out)
        if let next = pull.next, askPresence(next, of: hub, at: now) { pulls[hub] = pull }
    }

    /// Whether the sender may report a hub's members: each hub speaks for itself, and others only for dead ones. A hub
    /// that took this one for dead while it was cut off does not count.
    private func mayName(_ boot: UInt64, _ sender: HubIdentity) -> Bool {
        boot == sender.boot || boot != setup.own.boot && !peers.living.contains { $0.boot == boot }
    }

    // MARK: Answering

    /// Answers wait until Redis has taken those before them.
    mutating func receivePresenceQuestion(_ question: WaitingPresenceQuestion, at now: Instant) {
        presenceQuestions.append(question)
        answerPresence(at: now)
    }

    mutating func answerPresence(at now: Instant) {
        while untakenPieces < Self.mostUntaken, let asked = presenceQuestions.popFirst() {
            guard let answer = presenceAnswer(to: asked) else {
                sendDirect(.answer(id: asked.id, nil), to: asked.hub, after: nil, at: now)
                continue
            }
            let bytes = answer.encoded(at: Self.milliseconds)
            statistics.snapshots += 1
            untakenPieces += bytes.count
            let isSent = sendDirect(
                .answer(id: asked.id, bytes), to: asked.hub, after: writer.lastSequence, for: .piece(bytes.count),
                at: now)
            if !isSent { untakenPieces -= bytes.count }
        }
    }

    private func presenceAnswer(to asked: WaitingPresenceQuestion) -> PresenceAnswer? {
        let question: PresenceQuestion?
        do { question = try PresenceQuestion(asked.body) } catch { return nil }
        switch question {
        case nil: return nil
        case .digests:
            let state = state
            // No other hub reports the members of dead ones.
            let speaks = peers.speaksForDead(to: asked.hub)
            let dead = speaks ? state.knownHubs.subtracting(peers.living.map(\.boot)) : []
            return .digests(
                dead.union([setup.own.boot]).map { boot -> PresenceAnswer.Digests in
                    let pieces = state.pieces(of: boot)
                    return PresenceAnswer.Digests(
                        hub: boot, pieces: pieces, digests: state.digests(of: boot, in: pieces))
                })
        case .pieces(let boot, let pieces, let wanted):
            guard !wanted.isEmpty else { return nil }
            let (covered, snapshot) = state.snapshot(of: boot, in: pieces, wanted, mostBytes: Self.pieceBytes)
            return .pieces(of: boot, pieces, covered: covered, snapshot)
        }
    }
}

/// A question of another hub about who is present.
struct WaitingPresenceQuestion {
    let hub: HubIdentity
    let id: UInt64
    let body: [UInt8]
}
