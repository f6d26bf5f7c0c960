import Hub
import Push
import Stores

/// The push service's thread: passes each input to the feature concerned, keeps the time, and waits. Confined to that thread.
final class PushServiceWorker {
    private let context: PushContext
    private let mailbox: PushServiceMailbox
    private let progress: PushServiceProgress
    private let alerts: AlertSender
    private let activities: ActivityUpdater
    private let reading: ReadUpdater
    private let messages: MessageReader
    private let timed: TimedRows
    private let calls: PushCallHandler
    /// In monotonic milliseconds, as the next two.
    private var nextHeartbeat: Int64 = 0
    private var nextSweep: Int64 = 0
    private var nextPrune: Int64

    /// In milliseconds, as the next two: while alerts or activities wait.
    private static let heartbeatInterval: Int64 = 5000
    /// Always, to take over what dead hubs have left behind.
    private static let sweepInterval: Int64 = 30_000
    private static let pruneInterval: Int64 = 600_000

    init(
        _ setup: PushServiceSetup, _ mailbox: PushServiceMailbox, _ clients: PushClients,
        _ progress: PushServiceProgress
    ) {
        self.mailbox = mailbox
        self.progress = progress
        context = PushContext(setup, mailbox, clients)
        alerts = AlertSender(context)
        activities = ActivityUpdater(context)
        reading = ReadUpdater(context)
        messages = MessageReader(context, mailbox, alerts, activities, reading)
        timed = TimedRows(context, alerts)
        calls = PushCallHandler(context: context, activities: activities)
        nextPrune = context.now.monotonic + Self.pruneInterval
    }

    func run() {
        while mailbox.deadline == nil {
            turn()
            rest()
        }
        // Handles the last input before the end, above all outcomes.
        turn()
        context.database.attempt { try alerts.handOver($0) }
    }

    private func turn() {
        if context.database.isConnectionDue { connect() }
        if let next = mailbox.takeRules() {
            context.rules = context.rules.reloaded(as: next)
            activities.adopt(context.rules.activity)
            alerts.adopt(context.rules)
        }
        for item in mailbox.takeAll() {
            switch item {
            case .messages(let changes): messages.add(changes)
            case .timed(let changes): timed.note(changes)
            case .call(let call, let reply): reply.send(calls.answer(call))
            case .answers(let answers): alerts.take(answers)
            case .outcomes(let outcomes): for (push, outcome) in outcomes { finish(push, outcome) }
            }
        }
        alerts.advance()
        context.database.attempt { store in
            try settle(store)
            try messages.read(store)
            try timed.advance(store)
            try keepTime(store)
            try alerts.sendDue(store)
            try reading.sendBadges(store)
            try activities.refreshFacts(store)
        }
        activities.advance()
        context.database.attempt { try settle($0) }
        progress.publish(statistics)
    }

    private func finish(_ push: Push, _ outcome: PushOutcome) {
        switch context.outbox.finish(push, outcome) {
        case .alert(let message, let user): alerts.finished(message, user, push, outcome)
        case .activity(let id, let timestamp): activities.finished(id, timestamp, push, outcome)
        case nil: break
        }
    }

    /// Stores the outcomes of pushes.
    private func settle(_ store: PushStore) throws {
        try alerts.settle(store)
        try activities.settle(store)
    }

    private var statistics: PushServiceStatistics {
        PushServiceStatistics(
            messages: messages.count, lostMessages: messages.lost, timedRows: timed.count, lateTimedRows: timed.late,
            lostTimedRows: timed.lost, withheldTimedAlerts: timed.withheld, alerts: alerts.enqueued,
            sentAlerts: alerts.sent, droppedAlerts: alerts.dropped + reading.withdrawn, badges: reading.badges,
            alertReasons: alerts.reasons.merging([.read: reading.withdrawn]) { $1 }.filter { $0.value > 0 },
            proofs: alerts.proofs, activities: activities.count, activityStates: activities.statistics,
            droppedTokens: context.outbox.droppedTokens, failures: context.database.failures)
    }

    // MARK: The database

    private func connect() {
        let isConnected = context.database.connect { store in
            // Resumes where the hub's last process ended.
            try alerts.resume(store)
            try activities.resume(store)
        }
        guard isConnected else { return }
        alerts.lookNow()
        timed.reconnected()
        // The last statements before the connection ended may or may not have taken effect.
        nextSweep = 0
    }

    private func keepTime(_ store: PushStore) throws {
        let now = context.now.monotonic
        if now >= nextHeartbeat, activities.count > 0 || alerts.isWaiting {
            nextHeartbeat = now + Self.heartbeatInterval
            try store.heartbeat()
            try activities.take(store.adoptReturned(), store)
            try alerts.refreshWaiting(store)
        }
        if now >= nextSweep {
            nextSweep = now + Self.sweepInterval
            if alerts.isWaiting || activities.count > 0 { try store.heartbeat() }
            try activities.take(store.adoptOrphans(), store)
            try alerts.refreshWaiting(store)
            try alerts.takeBackUnheardOf(store)
            // Alerts that a dead hub held may be due.
            alerts.lookNow()
        }
        if now >= nextPrune {
            nextPrune = now + Self.pruneInterval
            let age = Duration.seconds(context.rules.alertLife / 1000 + 7 * 86_400)
            _ = try store.prune(olderThan: age)
            _ = try store.pruneTimed(olderThan: age)
        }
    }

    // MARK: Waiting

    private func rest() {
        guard mailbox.deadline == nil else { return }
        guard context.maySend else { return mailbox.wait(until: .now + .seconds(1)) }
        let time = context.now
        let isBusy = activities.count > 0 || alerts.isWaiting
        var due = nextSweep
        if context.database.store == nil {
            due = min(due, time.monotonic + context.database.retryDelay + 1)
        } else {
            if let waiting = messages.nextDue { due = min(due, waiting) }
            if let timedDue = timed.nextDue { due = min(due, timedDue) }
            if let badge = reading.nextDue { due = min(due, badge) }
            if let alertsDue = alerts.dueAt { due = min(due, time.monotonic + max(0, alertsDue - time.unix)) }
            if isBusy { due = min(due, nextHeartbeat) }
        }
        if isBusy { due = min(due, activities.nextLook) }
        if let decision = alerts.nextDecision { due = min(due, decision) }
        if let activitiesDue = activities.nextDue { due = min(due, activitiesDue) }
        let wait = min(max(1, due - time.monotonic), 60_000)
        mailbox.wait(until: .now + .milliseconds(wait))
    }
}
