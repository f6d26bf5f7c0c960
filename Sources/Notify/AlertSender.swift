import ChangeFeed
import Hub
import Push
import Wire

/// Alerts that are due: taken out of the queue, sent, and what became of them.
extension DeskLoop {
    /// A hub that is killed does not know of what it had taken whether it left, so it takes no more than this.
    private static let mostTaken = 500
    /// In milliseconds.
    private static let retry: Int64 = 1000

    func sendAlerts(_ store: PushStore) throws {
        try releaseThoseWhoAreBack(store)
        guard let due = alertsDue, due <= now.unix else { return }
        while true {
            let free = min(Self.mostTaken - errands.count, client.room)
            // The next outcome makes room, and brings the desk back here.
            guard free > 0 else { return }
            let limit = min(free, 100)
            let taken = try store.takeDue(limit: limit, except: Set(busy.keys))
            statistics.droppedAlerts += taken.expired + taken.dropped + taken.withoutDevice
            send(taken.alerts)
            if taken.count < limit { break }
        }
        // What is due and was not taken is of users who have an alert on its way: its outcome is waited for.
        alertsDue = try store.nextDue().map { max($0, now.unix + Self.retry) }
    }

    /// Whoever came back in the grace window has the message by socket.
    private func releaseThoseWhoAreBack(_ store: PushStore) throws {
        guard !waitedFor.isEmpty else { return }
        let back = waitedFor.filter { isLive($0) }
        if !back.isEmpty { statistics.droppedAlerts += try store.release(Array(back)) }
        waitedFor.subtract(back)
    }

    private func isLive(_ user: String) -> Bool { setup.whereabouts.users.standing(of: user) == .live }

    private func send(_ alerts: [DueAlert]) {
        var pushes: [Push] = []
        for alert in alerts {
            let isBack = isLive(alert.user)
            let variables = TemplateVariables(JSON(trusted: alert.variables[...]))
            let payload = rules.alert.payload(
                variables, badge: variables["badge"]?.int, conversation: alert.conversation,
                message: variables["message_id"]?.string ?? variables["message_id"]?.description)
            for device in alert.devices {
                func settle(_ outcome: String) {
                    settlements.append(
                        AlertSettlement(message: alert.message, destination: device.destination, outcome: outcome))
                }
                // Back since the alert was put into the queue, such as while Apple was away.
                guard !isBack else {
                    settle("live")
                    continue
                }
                guard !badTokens.contains(device.destination.token) else {
                    settle("bad token")
                    continue
                }
                guard let bytes = fitted(payload) else {
                    settle("too large")
                    continue
                }
                let push = Push(
                    id: PushID(named: alert.message + " " + device.destination.token.hex),
                    to: .device(device.destination), kind: .alert, priority: 10,
                    expiration: alert.expiresAt / 1000, collapseID: CollapseID.fitting(alert.message),
                    payload: bytes, deadline: alert.expiresAt)
                busy[alert.user, default: 0] += 1
                errands[push.id] = .alert(message: alert.message, user: alert.user)
                pushes.append(push)
            }
        }
        statistics.sentAlerts += pushes.count
        client.send(pushes)
    }

    private func fitted(_ payload: AlertPayload) -> [UInt8]? {
        do {
            return try payload.fitted().bytes
        } catch {
            logger.warning("An alert is not sent: \(error)")
            return nil
        }
    }

    /// Writes down what became of alerts.
    func settle(_ store: PushStore) throws {
        if !returned.isEmpty {
            try store.giveBack(returned)
            returned = []
        }
        if !settlements.isEmpty {
            try store.settle(settlements)
            settlements = []
        }
        if !delivered.isEmpty {
            try store.noteDelivered(delivered)
            delivered = [:]
        }
    }

    // MARK: Outcomes

    func note(_ outcome: PushOutcome, of push: Push) {
        let errand = errands.removeValue(forKey: push.id)
        noteToken(outcome, of: push)
        switch errand {
        case .alert(let message, let user):
            noteAlert(outcome, message, push)
            busy[user] = busy[user].flatMap { $0 > 1 ? $0 - 1 : nil }
            alertsDue = 0
        case .activity(let id, let timestamp): noteActivity(outcome, id, timestamp)
        case .once, nil: break
        }
        switch outcome {
        case .refused, .tooLarge, .badToken:
            logger.warning("Apple does not take the push \(push.id): \(outcome.words)")
        case .delivered, .unregistered, .superseded, .expired, .overflow, .unanswered, .stopped: break
        }
    }

    private func noteAlert(_ outcome: PushOutcome, _ message: String, _ push: Push) {
        guard case .device(let destination) = push.target else { return }
        let settlement = AlertSettlement(message: message, destination: destination, outcome: outcome.words)
        switch outcome {
        case .stopped, .overflow: returned.append(settlement)
        default: settlements.append(settlement)
        }
    }

    /// A token that is gone is dropped, unless it was registered again since.
    private func noteToken(_ outcome: PushOutcome, of push: Push) {
        guard case .device(let destination) = push.target else { return }
        switch outcome {
        case .unregistered(let since):
            attempt { statistics.droppedTokens += try $0.drop(destination, ifRegisteredBefore: since) }
        case .badToken:
            // It stays in the table: a wrong environment in the configuration must not cost all tokens.
            badTokens.insert(destination.token)
        default: break
        }
    }
}

extension PushOutcome {
    /// A few words for the table and the log.
    var words: String {
        switch self {
        case .delivered: "delivered"
        case .unregistered: "unregistered"
        case .refused(let status, let reason): "\(status) \(reason)"
        case .badToken(let reason): "bad token: \(reason)"
        case .superseded: "superseded"
        case .expired: "expired"
        case .overflow: "overflow"
        case .tooLarge(let bytes, let limit): "\(bytes) bytes, of \(limit)"
        case .unanswered: "unanswered"
        case .stopped: "stopped"
        }
    }
}
