import Cluster
package import Hub

/// Questions of other threads to other hubs, and their questions to this one: numbered direct messages, outside the log.
extension ClusterWorker {
    /// The limit of an answer in bytes; a larger one counts as none.
    private static var mostAnswer: Int { 4_000_000 }

    mutating func askPeers(_ asked: ClusterMail.Question, at now: Instant) {
        let hubs = link.isWhole && state.isInLog ? peers.living.filter { asked.hubs?.contains($0.name) ?? true } : []
        let absent = (asked.hubs ?? []).filter { name in !hubs.contains { $0.name == name } }
        let silent = absent.map { PeerAnswer(hub: $0, body: nil) }
        guard !hubs.isEmpty else { return asked.done(silent) }
        let whole = asked.done
        let done: PeerQuestions.Done = { answers in whole(answers + silent) }
        guard let entered = peerQuestions.openQuestion(hubs, until: asked.deadline, for: .caller(done)) else {
            statistics.questionsRefused += 1
            return done(hubs.map { PeerAnswer(hub: $0.name, body: nil) })
        }
        statistics.questions += UInt64(entered.count)
        for (hub, id) in entered {
            sendDirect(.question(id: id, subject: asked.subject.rawValue, asked.body), to: hub, after: nil, at: now)
        }
    }

    mutating func expireQuestions(at now: Instant) {
        let over = peerQuestions.expireQuestions(at: Self.milliseconds)
        statistics.questionsUnanswered += UInt64(over.count)
        finishQuestions(over, at: now)
    }

    mutating func finishQuestions(_ questions: [PeerQuestions.Finished], at now: Instant) {
        for question in questions {
            switch question.asker {
            case .caller(let done): done(question.answers)
            case .presence(let hub): takePresence(question.answers.first?.body, of: hub, at: now)
            }
        }
    }

    mutating func receiveQuestion(
        _ id: UInt64, _ subject: UInt8, _ body: [UInt8], from hub: HubIdentity, at now: Instant
    ) {
        if subject == PeerSubject.presence.rawValue {
            return receivePresenceQuestion(WaitingPresenceQuestion(hub: hub, id: id, body: body), at: now)
        }
        guard let subject = PeerSubject(rawValue: subject), let answering = setup.answers[subject] else {
            sendDirect(.answer(id: id, nil), to: hub, after: nil, at: now)
            return
        }
        let mailbox = mailbox
        answering.answerQuestion(body, of: hub.name) { answer in
            mailbox.post { $0.answers.append(ClusterMail.Answer(hub: hub, id: id, body: answer)) }
        }
    }

    mutating func sendAnswer(_ answer: ClusterMail.Answer, at now: Instant) {
        let body = answer.body.flatMap { $0.count <= Self.mostAnswer ? $0 : nil }
        sendDirect(.answer(id: answer.id, body), to: answer.hub, after: nil, at: now)
    }
}

extension ClusterService: PeerAsking {
    package func askHubs(
        _ subject: PeerSubject, _ body: [UInt8], of hubs: [String]?, within patience: Duration,
        then done: @escaping @Sendable ([PeerAnswer]) -> Void
    ) {
        let milliseconds =
            Int64(patience.components.seconds) * 1000 + patience.components.attoseconds / 1_000_000_000_000_000
        let question = ClusterMail.Question(
            subject: subject, body: body, hubs: hubs, deadline: ClusterWorker.milliseconds + milliseconds, done: done)
        let isTaken = mailbox.post { mail in
            if !mail.isClosed { mail.questions.append(question) }
            return !mail.isClosed
        }
        if !isTaken { done((hubs ?? []).map { PeerAnswer(hub: $0, body: nil) }) }
    }
}
