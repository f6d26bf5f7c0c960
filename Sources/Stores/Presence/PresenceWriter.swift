package import Hub
package import Logging
import Postgres
package import Wire
import Workers

/// Keeps the database told of who is present in channels (`roost.presence`), so that a hub that starts again knows it, and
/// tells the application of users who come online and go, by the statement it has configured.
///
/// It has one thread and one connection of its own, and no part of the hub ever waits for it. It writes about once a second
/// what changed, and sends nothing where nothing did. While the database is away, what is to be written is kept: the newest
/// word on each presence and user, so no more than there are of them.
package final class PresenceWriter: Sendable {
    private let setup: PresenceSetup
    private let stopSignal = StopSignal()
    private let published = Published(PresenceReport())
    private let thread = WorkerThread(named: "roost-presence")

    /// - Parameters:
    ///   - node: the hub's name across restarts.
    ///   - log: what is written to `roost.presence`.
    ///   - users: who comes online and goes; what nobody is to be told of is thrown away.
    ///   - statement: SQL with the parameters `$1::text[]`, the users, `$2::boolean[]`, whether they are online, and
    ///     `$3::timestamptz[]`, when they came or were last seen; nil where the application is told nothing.
    ///   - whenStale: called on the writer's thread with users whom the application was told to be online, long ago or
    ///     by another process, who are not: for those that `restore` could not read. As `RestoredPresence.users`.
    package init(
        conninfo: String, node: String, log: PresenceLog, users: UserPresence?, statement: String?, logger: Logger,
        timing: PresenceTiming = PresenceTiming(),
        whenStale: @escaping @Sendable ([(user: Name, seen: Int64)]) -> Void = { _ in }
    ) {
        setup = PresenceSetup(
            conninfo: conninfo, node: node, log: log, users: users, statement: statement, logger: logger,
            timing: timing, whenStale: whenStale)
    }

    /// Reads whom the last process of this node served. To be called before the hub listens, and before `start`; it takes
    /// no longer than `timing.restoring`, and where it fails, says so in the log and returns nobody.
    package func restore() -> RestoredPresence {
        let setup = setup
        let stopSignal = StopSignal()
        let outcome = Published<Result<RestoredPresence, any Error>?>(nil)
        let deadline = ContinuousClock.now + setup.timing.restoring
        stopSignal.stop(by: deadline)
        // The look-up of a host's name has no deadline in libpq, so the thread may have to be left behind.
        let reader = WorkerThread(named: "roost-restore")
        reader.start {
            outcome.value = Result {
                // So that the second of two hosts has its turn, too.
                let connection = try PresenceSession.open(
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

    /// Starts the thread; it connects, and keeps trying. Once in the life of a writer.
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
            if !worker.run() {
                setup.logger.warning(
                    "The hub stopped before all changes of presence were written; after the restart some may be missing."
                )
            }
        }
    }

    /// Writes what waits and ends the thread. One that hangs is left behind after `timing.stopping`: whoever stops a
    /// writer is about to end the process.
    package func stop() {
        let deadline = ContinuousClock.now + setup.timing.stopping
        stopSignal.stop(by: deadline)
        thread.join(by: deadline + .milliseconds(100))
    }

    /// From any thread; a pass old.
    package var statistics: PresenceStatistics {
        let report = published.value
        var statistics = report.statistics
        statistics.oldestWaiting = report.waitingSince.map { .now - $0 }
        return statistics
    }

    /// The statement for the sample chat, whose users have a `status` and a `last_seen`.
    package static var statementOfSampleChat: String { SampleChatSQL.statusOfSampleChat.text }
}

/// What a writer of presence works with.
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

/// How often presence is written, and how long its ends may take.
package struct PresenceTiming: Sendable {
    /// Between two looks at what is to be written.
    package var interval: Duration = .seconds(1)
    /// Between two heartbeats while users are online: so wrong may be when they were last seen, if the hub is killed.
    /// Nil: it gives none.
    package var heartbeat: Duration? = .seconds(15)
    /// The longest first wait after a failure; doubled up to 15 s.
    package var firstRetry: Duration = .seconds(1)
    /// For reading at start-up whom the last process served, connecting included.
    package var restoring: Duration = .seconds(3)
    /// For writing the rest when the hub stops.
    package var stopping: Duration = .seconds(2)

    package init() {}
}

/// Counters since the writer was made, and what waits.
package struct PresenceStatistics: Sendable, Equatable {
    /// Looks at what is to be written.
    package var passes = 0
    /// Statements that wrote presences.
    package var batches = 0
    /// Presences that those wrote or deleted; one that changes twice counts twice.
    package var rows = 0
    /// Presences that Postgres refused; they are not there after a restart.
    package var refusedRows = 0
    /// Transactions that told the application of users.
    package var transactions = 0
    /// Transitions that were settled: told to the application, or found to be no news to it.
    package var transitions = 0
    /// Transitions that the application's statement refused.
    package var refusedTransitions = 0
    /// Connections that were lost or not made, and batches that have to be tried again.
    package var failures = 0
    /// How long the oldest word has been waiting to be written; nil where none does for longer than a pass.
    package var oldestWaiting: Duration?

    package init() {}
}

/// What other threads may know of the worker's.
struct PresenceReport: Sendable {
    var statistics = PresenceStatistics()
    /// Since when something has been waiting to be written.
    var waitingSince: ContinuousClock.Instant?
}
