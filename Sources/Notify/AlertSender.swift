import Hub
import Matching
import Push
import Stores
import Wire

/// Alerts: puts them into the queue in Postgres, takes those that are due, sends them, and writes down what became of
/// them. Confined to the worker's thread.
final class AlertSender {
    private let context: PushContext
    /// Users with alerts in flight, and how many each has.
    private var busy: [Name: Int] = [:]
    /// Users whom an alert waits for: in a grace window here, or at another hub.
    private var waitedFor: Set<Name> = []
    private var settlements: [AlertSettlement] = []
    /// Alerts that never left, and are to be sent another time.
    private var returned: [AlertSettlement] = []
    /// When to look into the queue next, in milliseconds since 1970; nil where nothing is queued.
    private(set) var dueAt: Int64?
    /// Alerts that were put into the queue.
    private(set) var enqueued = 0
    /// Alerts that were handed over to be sent, counted once for each phone.
    private(set) var sent = 0
    /// Alerts that nobody had to get any more: their user came back, or their time was over, or there was no phone.
    private(set) var dropped = 0

    /// A hub that is killed does not know of what it had taken whether it left, so it takes no more than this.
    private static let mostTaken = 500
    /// How long to wait for those whose user has an alert in flight already, in milliseconds.
    private static let retry: Int64 = 1000

    init(_ context: PushContext) { self.context = context }

    /// Whether an alert waits for its user to come back.
    var isWaiting: Bool { !waitedFor.isEmpty }

    /// The queue may have alerts that are due.
    func lookNow() { dueAt = 0 }

    /// Goes on where the hub's last process ended.
    func resume(_ store: PushStore) throws {
        let now = context.now
        let unanswered = try store.resumeAlerts(
            heldUntil: now.unix + max(0, context.restartUntil - now.monotonic))
        if unanswered > 0 {
            context.logger.warning(
                """
                \(unanswered) alerts were on their way when this hub ended, and it is not known whether they arrived; \
                they are not sent again.
                """)
        }
        try refreshWaiting(store)
    }

    func refreshWaiting(_ store: PushStore) throws { waitedFor = try store.usersWaitedFor() }

    private func isLive(_ user: Name) -> Bool { context.presence.users.status(of: user) == .live }

    // MARK: Into the queue

    /// Puts into the queue what the members of an audience are to be alerted of.
    func enqueue(_ members: [(AudienceMember, RowChange)], _ store: PushStore) throws {
        let time = context.now
        var drafts: [AlertDraft] = []
        let reached = members.filter { member, _ in member.hasDevice && !member.isMuted }
        guard !reached.isEmpty else { return }
        let elsewhere = try store.onlineElsewhere(Set(reached.map(\.0.user)))
        for (member, change) in reached {
            let notification = MessageNotification(
                member.variables, badge: member.badge, preview: context.rules.preview)
            let expiresAt = min(time.unix, change.committedAtMilliseconds ?? time.unix) + context.rules.alertLife
            guard notification.sender != member.user, expiresAt > time.unix else { continue }
            let state: AlertDraft.State =
                notification.isSentAlways ? .due : state(of: member.user, elsewhere: elsewhere, at: time)
            if state != .due, state != .dropped { waitedFor.insert(member.user) }
            var variables = notification.variables
            if let badge = member.badge { variables.set("badge", badge) }
            if let id = change.messageID { variables.set("message_id", id) }
            variables.note(table: change.table)
            drafts.append(
                AlertDraft(
                    message: change.messageKey, user: member.user, conversation: notification.conversation,
                    variables: variables.json, expiresAt: expiresAt, state: state, place: change.id))
        }
        guard !drafts.isEmpty else { return }
        enqueued += try store.enqueue(drafts)
    }

    /// Whether an alert is sent now, by whether the hub takes the user for somebody who is there.
    private func state(of user: Name, elsewhere: Set<Name>, at time: HubTime) -> AlertDraft.State {
        switch context.presence.users.status(of: user) {
        case .live: .dropped
        case .inGrace(let until): .held(until: time.unix + max(0, until - time.monotonic))
        case .away: elsewhere.contains(user) ? .elsewhere : .due
        }
    }

    // MARK: Out of the queue

    /// Takes the alerts that are due out of the queue, as many as there is room for, and sends them.
    func sendDue(_ store: PushStore) throws {
        try releaseThoseWhoAreBack(store)
        guard let dueAt, dueAt <= context.now.unix else { return }
        while context.maySend {
            let free = min(Self.mostTaken - context.outbox.count, context.outbox.room)
            // The next outcome makes room, and brings the worker back here.
            guard free > 0 else { return }
            let limit = min(free, 100)
            let taken = try store.takeDue(limit: limit, except: Set(busy.keys))
            dropped += taken.expired + taken.dropped + taken.withoutDevice
            send(taken.alerts)
            if taken.count < limit { break }
        }
        // What is due and was not taken is of users who have an alert in flight: its outcome is waited for.
        self.dueAt = try store.nextDue().map { max($0, context.now.unix + Self.retry) }
    }

    /// Takes the alerts of users who came back in the grace window out of the queue: they have the message by socket.
    private func releaseThoseWhoAreBack(_ store: PushStore) throws {
        guard isWaiting else { return }
        let back = waitedFor.filter { isLive($0) }
        if !back.isEmpty { dropped += try store.release(Array(back)) }
        waitedFor.subtract(back)
    }

    private func send(_ alerts: [DueAlert]) {
        var pushes: [(push: Push, about: InFlightPush)] = []
        for alert in alerts {
            let variables = TemplateVariables(JSON(trusted: alert.variables[...]))
            let isBack = !variables.isSentAlways && isLive(alert.user)
            let payload = context.rules.payload(of: alert, variables)
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
                guard !context.outbox.isBad(device.destination.token) else {
                    settle("bad token")
                    continue
                }
                guard let bytes = fitted(payload) else {
                    settle("too large")
                    continue
                }
                let push = Push(
                    id: PushID(named: alert.message.text + " " + device.destination.token.hex),
                    to: .device(device.destination), kind: .alert, priority: 10,
                    expiration: alert.expiresAt / 1000,
                    collapseID: CollapseID.fitting(variables.collapseID ?? alert.message.text),
                    payload: bytes, deadline: alert.expiresAt)
                busy[alert.user, default: 0] += 1
                pushes.append((push, .alert(message: alert.message, user: alert.user)))
            }
        }
        sent += pushes.count
        context.outbox.send(pushes)
    }

    private func fitted(_ payload: AlertPayload) -> [UInt8]? {
        do {
            return try payload.fitted().bytes
        } catch {
            context.logger.warning("An alert is not sent: \(error)")
            return nil
        }
    }

    // MARK: Outcomes

    func finished(_ message: Name, _ user: Name, _ push: Push, _ outcome: PushOutcome) {
        if case .device(let destination) = push.target {
            let settlement = AlertSettlement(message: message, destination: destination, outcome: outcome.words)
            switch outcome {
            case .stopped, .overflow: returned.append(settlement)
            default: settlements.append(settlement)
            }
        }
        busy[user] = busy[user].flatMap { $0 > 1 ? $0 - 1 : nil }
        lookNow()
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
    }
}
