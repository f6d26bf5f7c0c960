import Cluster
import Hub

/// Who is present on other hubs, where this one's copy is not whole: asked for piece by piece, and answered to those who ask.
extension ClusterWorker {
    /// For how long a piece is waited for, in milliseconds.
    private static var piecePatience: Int64 { 10_000 }
    /// Bytes of an answer, about; and of answers that Redis has not taken yet. The link is given up at 8 MiB.
    private static var pieceBytes: Int { 256 << 10 }
    private static var mostUntaken: Int { 1 << 20 }

    // MARK: Asking

    /// Makes this hub's copy of another one's members whole. Where that is under way already it goes on.
    ///
    /// Not before this hub is in the log: an answer stands behind the messages that its sender had said, and of those a hub that begins
    /// to read later has none. Beats say then that a copy is missing.
    mutating func pull(from hub: HubIdentity, at now: Instant) {
        guard pulls[hub] == nil, state.isInLog else { return }
        if askPresence(.digests, of: hub, at: now) { pulls[hub] = PresencePull() }
    }

    private mutating func askPresence(_ question: PresenceQuestion, of hub: HubIdentity, at now: Instant) -> Bool {
        let deadline = Self.milliseconds + Self.piecePatience
        guard let entered = peerQuestions.ask([hub], until: deadline, for: .presence(of: hub)) else { return false }
        statistics.questions += 1
        for (hub, id) in entered {
            send(
                .question(id: id, subject: PeerSubject.presence.rawValue, question.encoded), to: hub, after: nil,
                at: now)
        }
        return true
    }

    /// - Parameter body: nil where there was no answer.
    mutating func takePresence(_ body: [UInt8]?, of hub: HubIdentity, at now: Instant) {
        guard var pull = pulls.removeValue(forKey: hub), let body else { return }
        var out: [ClusterState.Output] = []
        do {
            switch try pull.read(body, at: Self.milliseconds) {
            case nil: return
            case .digests(let hubs):
                for theirs in hubs where mayName(theirs.hub, hub) {
                    pull.compare(theirs, with: state.digests(of: theirs.hub, in: theirs.pieces))
                }
            case .pieces(let boot, let pieces, let covered, let snapshot):
                guard pull.came(covered, of: boot, in: pieces), mayName(boot, hub) else { return }
                state.replace(boot, in: pieces, covered, by: snapshot, isOfDead: boot != hub.boot, &out)
            }
        } catch {
            cannotRead(hub, at: now)
        }
        perform(out)
        if let next = pull.next, askPresence(next, of: hub, at: now) { pulls[hub] = pull }
    }

    /// Whether what the sender says of a hub's members counts: each hub speaks for itself, and others for the dead alone. Who
    /// took this hub for dead, while it was cut off, says nothing of it.
    private func mayName(_ boot: UInt64, _ sender: HubIdentity) -> Bool {
        boot == sender.boot || boot != setup.own.boot && !peers.living.contains { $0.boot == boot }
    }

    // MARK: Answering

    /// Answers wait while Redis has not taken those before them.
    mutating func askedOfPresence(_ question: WaitingPresenceQuestion, at now: Instant) {
        presenceQuestions.append(question)
        answerPresence(at: now)
    }

    mutating func answerPresence(at now: Instant) {
        while untakenPieces < Self.mostUntaken, let asked = presenceQuestions.popFirst() {
            guard let answer = answer(to: asked) else {
                send(.answer(id: asked.id, nil), to: asked.hub, after: nil, at: now)
                continue
            }
            let bytes = answer.encoded(at: Self.milliseconds)
            statistics.snapshots += 1
            untakenPieces += bytes.count
            let isSent = send(
                .answer(id: asked.id, bytes), to: asked.hub, after: writer.lastSequence, for: .piece(bytes.count),
                at: now)
            if !isSent { untakenPieces -= bytes.count }
        }
    }

    private func answer(to asked: WaitingPresenceQuestion) -> PresenceAnswer? {
        let question: PresenceQuestion?
        do { question = try PresenceQuestion(asked.body) } catch { return nil }
        switch question {
        case nil: return nil
        case .digests:
            let state = state
            // Those of the dead have nobody else who would name them.
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

/// What another hub asked about who is present.
struct WaitingPresenceQuestion {
    let hub: HubIdentity
    let id: UInt64
    let body: [UInt8]
}
