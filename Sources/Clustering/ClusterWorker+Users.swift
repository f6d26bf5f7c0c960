import Cluster
import Hub
import Wire

/// Counts users' sockets across hubs (`UserTally`): this hub sends each change through the log, and asks a new hub for all its counts.
extension ClusterWorker {
    /// Users in one message.
    private static var mostUsers: Int { 500 }
    private static var patience: Int64 { 2000 }

    /// Sends the changed counts to the other hubs. While the hubs are out of reach, the newest count of each user is kept.
    mutating func tellUsers() {
        guard state.isInLog else { return }
        while true {
            let counts = setup.shared.userTally.takeChanges(upTo: Self.mostUsers)
            guard !counts.isEmpty else { return }
            writeMessage(.users(counts.map { PeerMessage.UserCount(user: $0.user, count: $0.count) }))
        }
    }

    func receiveUserCounts(_ counts: [PeerMessage.UserCount], of hub: HubIdentity) {
        // A late message of a gone hub no longer counts.
        guard peers.living.contains(hub) else { return }
        setup.shared.userTally.updateCounts(counts.map { ($0.user, $0.count) }, of: hub.boot)
    }

    mutating func askForUsers(at now: Instant) {
        guard state.isInLog else { return }
        let mailbox = mailbox
        for (hub, part) in userCopies.nextQuestions() {
            let done: PeerQuestions.Done = { answers in
                let answer = ClusterMail.UserCounts(hub: hub, part: part, bytes: answers.first?.body)
                mailbox.post { $0.userCounts.append(answer) }
            }
            askPeers(
                ClusterMail.Question(
                    subject: .users, body: [UInt8(part)], hubs: [hub.name], deadline: Self.milliseconds + Self.patience,
                    done: done), at: now)
        }
    }

    mutating func receiveUserAnswer(_ answer: ClusterMail.UserCounts, at now: Instant) {
        var counts: [(user: Name, count: Int)]?
        if let bytes = answer.bytes {
            var fields = RelayReader(bytes[...])
            do { counts = try fields.readUsers() } catch {
                reportUnreadable(answer.hub, at: now)
            }
        }
        guard userCopies.receiveAnswer(answer.hub, part: answer.part, isKnown: counts != nil), let counts else {
            return
        }
        setup.shared.userTally.replaceCounts(counts, of: answer.hub.boot) { UserCopies.part(of: $0) == answer.part }
        askForUsers(at: now)
    }
}
