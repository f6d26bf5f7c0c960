package import Hub
package import Logging
import Postgres
package import Wire
import Workers

/// Stores presences (`roost.presence`), so that a restarted hub knows them, and reports to the application, by its
/// configured statement, which users come online and go offline.
///
/// Uses one thread and one connection, and no part of the hub ever waits for it. It writes changes about once a second,
/// and sends nothing if there are none. While the database is away, only the newest state of each presence and user is
/// kept, so memory is bounded by their number.
package final class PresenceWriter: Sendable {
    private let setup: PresenceSetup
    private let stopSignal = StopSignal()
    private let published = Published(PresenceReport())
    private let thread = WorkerThread(named: "roost-presence")

    /// - Parameters:
    ///   - node: the hub's name across restarts.
    ///   - log: the source for `roost.presence`.
    ///   - users: the source of users' transitions; without a statement they are discarded.
    ///   - statement: SQL with the parameters `$1::text[]`, the users, `$2::boolean[]`, whether they are online, and
    ///     `$3::timestamptz[]`, when they came or were last seen; nil if the application is not told.
    ///   - whenStale: called on the writer's thread with users that are stored as online, by an earlier connection or
    ///     process, but are not: those that `restore` could not read. As `RestoredPresence.users`.
    package init(
        conninfo: String, node: String, log: PresenceLog, users: UserPresence?, statement: String?, logger: Logger,
        timing: PresenceTiming = PresenceTiming(),
        whenStale: @escaping @Sendable ([(user: Name, seen: Int64)]) -> Void = { _ in }
    ) {
        setup = PresenceSetup(
            conninfo: conninfo, node: node, log: log, users: users, statement: statement, logger: logger,
            timing: timing, whenStale: whenStale)
    }

    /// Reads the presences and users that the node's last process stored. Call before the hub listens, and before
    /// `start`. Takes at most `timing.restoring`; a failure is logged, and returns none.
    package func restore() -> RestoredPresence {
        let setup = setup
        let stopSignal = StopSignal()
        let outcome = Published<Result<RestoredPresence, any Error>?>(nil)
        let deadline = ContinuousClock.now + setup.timing.restoring
        stopSignal.stop(by: deadline)
        // Resolving a host name has no deadline in libpq, so the thread may have to be left behind.
        let reader = WorkerThread(named: "roost-restore")
        reader.start {
            outcome.value = Result {
                // Half of the time, so that the second of two hosts is tried, too.
                let connection = try PresenceSession.openSession(
                    setup.conninfo, waiter: PlainWaiter(until: stopSignal), logger: setup.logger,
                    within: setup.timing.restoring / 2)
                var restored = RestoredPresence()
                restored.presences = try PresenceSession.presences(of: setup.node, on: connection)
                if setup.users != nil, setup.statement != nil {
                    restored.users = try PresenceSession.onlineUsers(of: setup.node, on: connection)
                }
                return restored
            }
        }
        reader.join(by: deadline + .milliseconds(100))
        return RestoredPresence(outcome.value, logger: setup.logger)
    }

    /// Starts the thread, which connects and keeps trying. Call once.
    package func start() {
        let (setup, stopSignal, published) = (setup, stopSignal, published)
        thread.start {
            var worker = WriterThread(
                PresenceWorker(setup, published), conninfo: setup.conninfo, interval: setup.timing.interval,
                stopSignal: stopSignal, logger: setup.logger,
                reconnector: Reconnector(
                    first: setup.timing.firstRetry, logger: setup.logger,
                    lost: "Presence is not written to the database for now; the hub keeps trying",
                    regained: "Presence is written to the database again."))
            if !worker.runUntilStopped() {
                setup.logger.warning(
                    "The hub stopped before all changes of presence were written; after the restart some may be missing."
                )
            }
        }
    }

    /// Writes what is waiting and stops the thread. A thread that hangs is left behind after `timing.stopping`, as the
    /// process is about to end.
    package func stop() {
        let deadline = ContinuousClock.now + setup.timing.stopping
        stopSignal.stop(by: deadline)
        thread.join(by: deadline + .milliseconds(100))
    }

    /// As of the last pass; callable from any thread.
    package var statistics: PresenceStatistics {
        let report = published.value
        var statistics = report.statistics
        statistics.oldestWaiting = report.waitingSince.map { .now - $0 }
        return statistics
    }

    /// The statement for the sample chat, whose users have a `status` and a `last_seen`.
    package static var statementOfSampleChat: String { SampleChatSQL.statusOfSampleChat.text }
}

/// The parameters of a presence writer.
struct PresenceSetup: Sendable {
    let conninfo: String
    let node: String
    let log: PresenceLog
    let users: UserPresence?
    let statement: String?
    let logger: Logger
    let timing: PresenceTiming
    let whenStale: @Sendable ([(user: Name, seen: Int64)]) -> Void
}

/// The intervals of a presence writer, and its limits at start and stop.
package struct PresenceTiming: Sendable {
    /// The time between two passes.
    package var interval: Duration = .seconds(1)
    /// The time between two heartbeats while users are online, which is the greatest error of their last-seen time if
    /// the hub is killed. Nil for none.
    package var heartbeat: Duration? = .seconds(15)
    /// The longest first wait after a failure; later waits double up to 15 s.
    package var firstRetry: Duration = .seconds(1)
    /// The limit for reading the last process's presences at the start, including connecting.
    package var restoring: Duration = .seconds(3)
    /// For writing the rest when the hub stops.
    package var stopping: Duration = .seconds(2)

    package init() {}
}

/// Counters since the writer's creation, and the current delay.
package struct PresenceStatistics: Sendable, Equatable {
    /// Passes of the writer's loop.
    package var passes = 0
    /// Statements that wrote presences.
    package var batches = 0
    /// Presences that these wrote or deleted; one that changes twice counts twice.
    package var rows = 0
    /// Presences that Postgres refused; they are missing after a restart.
    package var refusedRows = 0
    /// Transactions that told the application about users.
    package var transactions = 0
    /// Transitions that are done with: told to the application, or found to be known to it.
    package var transitions = 0
    /// Transitions that the application's statement refused.
    package var refusedTransitions = 0
    /// Connections that were lost or could not be opened, and batches that have to be retried.
    package var failures = 0
    /// The waiting time of the oldest change; nil unless one waits for longer than a pass.
    package var oldestWaiting: Duration?

    package init() {}
}

/// The worker's state for other threads.
struct PresenceReport: Sendable {
    var statistics = PresenceStatistics()
    /// The start of the present wait.
    var waitingSince: ContinuousClock.Instant?
}
