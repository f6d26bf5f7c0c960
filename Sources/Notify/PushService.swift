import ChangeFeed
import HTTP
package import Hub
package import Logging
package import Matching
package import Push
import Synchronization
import Wire
import Workers

/// Brings together the inputs of a push: the written rows, the users' presence, the phones and activities in Postgres, and the clients
/// that talk to the services.
///
/// It has one thread and one connection to Postgres of its own; no other part of the hub ever waits for it. Its decisions are made
/// durable before anything is sent, so a hub that is killed loses no alert that it had not begun to send, and repeats none. Safe from
/// any thread.
package final class PushService: Sendable {
    private let mailbox = PushServiceMailbox()
    private let setup: PushServiceSetup
    private let clients: PushClients
    private let thread = WorkerThread(named: "roost-push")
    private let progress = PushServiceProgress()
    let reader: PushCallReader

    /// - Parameters:
    ///   - presence: the event loops' knowledge of people.
    ///   - clock: the machine's clocks.
    ///   - show: shows an activity's state to its user's sockets; called on the service's thread.
    ///   - ask: hands a loop questions, behind the changes that the feed has handed it; called on the service's thread.
    package init(
        conninfo: String, rules: PushRules, services: [PushServiceConfiguration], presence: PresenceView,
        logger: Logger,
        clock: @escaping @Sendable () -> HubTime, show: @escaping @Sendable (ActivitySummary) -> Void,
        ask: @escaping @Sendable ([ReceiptQuestion], Int) -> Void
    ) {
        setup = PushServiceSetup(
            conninfo: conninfo, rules: rules, presence: presence, logger: logger, clock: clock, show: show, ask: ask)
        reader = PushCallReader(
            bundle: Name(rules.bundle), environment: rules.environment, kinds: Set(services.map(\.kind)),
            web: services.lazy.compactMap(\.web).first)
        clients = PushClients(services, logger: logger) { [mailbox] outcomes in
            mailbox.post(outcomes: outcomes.map { (push: $0.0, outcome: $0.1) })
        }
        presence.receipts.sendAnswers { [mailbox] in mailbox.post(answers: $0) }
    }

    /// Starts the threads. Must be called once.
    package func start() {
        clients.start()
        let (setup, mailbox, clients, progress) = (setup, mailbox, clients, progress)
        thread.start { PushServiceWorker(setup, mailbox, clients, progress).run() }
    }

    /// Waits for the answers to what has left, and puts back what has not. Call it when the feed has stopped.
    package func stop(within limit: Duration) {
        let end = ContinuousClock.now + limit
        // Pushes that the clients give back would be taken out of the queue again and end with the process, without any record that
        // they never left.
        mailbox.stopSending()
        clients.stop(within: limit / 2)
        mailbox.stop(by: end)
        // A database that hangs must not keep the process alive.
        thread.join(by: end + .milliseconds(100))
    }

    /// Switches to the texts and times of `rules`. The recipients of pushes stay until a restart.
    package func adopt(_ rules: PushRules) { mailbox.post(rules: rules) }

    /// - Returns: false if too many calls wait.
    func take(_ call: PushCall, _ reply: HTTPReply) -> Bool { mailbox.post(call, reply) }

    package var statistics: PushServiceStatistics { progress.statistics }
    package var clientStatistics: [PushKind: PushStatistics] { clients.statistics }
}

extension PushService: ChangeObserver {
    package func takeChanges(_ changes: [RowChange]) {
        let timed = changes.filter { $0.record != nil && setup.rules.isTimed($0.table) }
        if !timed.isEmpty { mailbox.post(timed: timed) }
        let messages = changes.filter { setup.rules.isMessage($0) || setup.rules.isReading($0) }
        guard !messages.isEmpty else { return }
        let lost = mailbox.post(messages: messages)
        if lost > 0 { progress.lost(lost, setup.logger) }
    }

    package func observesTable(_ table: Table) -> Bool {
        wantsReceipts(table) || setup.rules.isOfReading(table) || setup.rules.isTimed(table)
    }
    package func wantsReceipts(_ table: Table) -> Bool { setup.rules.isOfMessages(table) }

    package var taken: Int { mailbox.counts.taken }
    package var settled: Int { mailbox.counts.settled }
}

/// The setup of a push service.
struct PushServiceSetup: Sendable {
    let conninfo: String
    let rules: PushRules
    let presence: PresenceView
    let logger: Logger
    let clock: @Sendable () -> HubTime
    let show: @Sendable (ActivitySummary) -> Void
    let ask: @Sendable ([ReceiptQuestion], Int) -> Void
}

/// The counters of a push service since its creation.
package struct PushServiceStatistics: Sendable {
    /// Messages whose audience was asked for.
    package internal(set) var messages = 0
    /// Messages that no user was notified of: too many waited for the database, or it did not report the audience in time.
    package internal(set) var lostMessages = 0
    /// Rows whose audience was asked for because their time had come; those of them that were pushed long after it; those that no user
    /// was alerted of; and alerts beyond the limit of one user per minute.
    package internal(set) var timedRows = 0
    package internal(set) var lateTimedRows = 0
    package internal(set) var lostTimedRows = 0
    package internal(set) var withheldTimedAlerts = 0
    /// Alerts queued.
    package internal(set) var alerts = 0
    /// Alerts handed over for sending, counted once for each phone.
    package internal(set) var sentAlerts = 0
    /// Alerts that no longer had to be sent: their user came back, or they expired, or there was no phone.
    package internal(set) var droppedAlerts = 0
    /// Numbers on icons handed over for pushing, counted once for each phone.
    package internal(set) var badges = 0
    /// The reasons why alerts were sent or dropped.
    package internal(set) var alertReasons: [AlertReason: Int] = [:]
    /// The times that apps took to prove messages, from the question.
    package internal(set) var proofs = Histogram.ofLatency
    /// Live Activities that this hub updates now.
    package internal(set) var activities = 0
    package internal(set) var activityStates = ActivityStatistics()
    /// Tokens that Apple reported as gone, and that were dropped.
    package internal(set) var droppedTokens = 0
    /// The number of times that the database refused a statement, or was away.
    package internal(set) var failures = 0
}

/// The worker's figures for other threads. Safe from any thread.
final class PushServiceProgress: Sendable {
    private let state = Mutex((statistics: PushServiceStatistics(), lost: 0, loggedAt: ContinuousClock.Instant?.none))

    var statistics: PushServiceStatistics {
        state.withLock { state in
            var statistics = state.statistics
            statistics.lostMessages += state.lost
            return statistics
        }
    }

    func publish(_ statistics: PushServiceStatistics) { state.withLock { $0.statistics = statistics } }

    /// Counts messages for which the mailbox had no room, and logs that at most once a minute.
    func lost(_ count: Int, _ logger: Logger) {
        let isToBeLogged = state.withLock { state in
            state.lost += count
            if let loggedAt = state.loggedAt, loggedAt + .seconds(60) > .now { return false }
            state.loggedAt = .now
            return true
        }
        guard isToBeLogged else { return }
        logger.error(
            """
            \(count) new messages are not pushed, and more may follow: \(PushServiceMailbox.mostMessages) wait for \
            Postgres already; see why alerts.audience is slow.
            """)
    }
}
