package import Hub
package import Logging
import Postgres
import Wire
import Workers

/// Reports proven receipts to the application, by its configured statement (`receipts.statement`).
///
/// Uses one thread and one session: a statement that is slow, or waits for a lock, delays nothing but receipts. While
/// the database is away, they wait in the `ReceiptLog`.
package final class ReceiptWriter: Sendable {
    private let setup: ReceiptSetup
    private let stopSignal = StopSignal()
    private let published = Published(ReceiptStatistics())
    private let thread = WorkerThread(named: "roost-receipts")

    /// - Parameter statement: SQL with the parameters `$1::text[]`, the users, `$2::text[]`, the tables, `$3::jsonb[]`,
    ///   the rows' primary keys, `$4::timestamptz[]`, the times of proof, and `$5::text[]`, `delivered` or `shown`.
    package init(
        conninfo: String, statement: String, log: ReceiptLog, logger: Logger,
        timing: ReceiptTiming = ReceiptTiming()
    ) {
        setup = ReceiptSetup(conninfo: conninfo, statement: statement, log: log, logger: logger, timing: timing)
    }

    /// Starts the thread, which connects and keeps trying. Call once.
    package func start() {
        let (setup, stopSignal, published) = (setup, stopSignal, published)
        thread.start {
            var worker = WriterThread(
                ReceiptWorker(setup, published), conninfo: setup.conninfo, interval: setup.timing.interval,
                stopSignal: stopSignal, logger: setup.logger,
                reconnector: Reconnector(
                    first: setup.timing.firstRetry, logger: setup.logger,
                    lost: "Receipts are not written to the database for now; the hub keeps trying",
                    regained: "Receipts are written to the database again."))
            // Clients that come back prove the remaining receipts again (`ReceiptLog`).
            _ = worker.runUntilStopped()
        }
    }

    /// Writes what is waiting and stops the thread. A thread that hangs is left behind after `timing.stopping`.
    package func stop() {
        let deadline = ContinuousClock.now + setup.timing.stopping
        stopSignal.stop(by: deadline)
        thread.join(by: deadline + .milliseconds(100))
    }

    /// As of the last pass; callable from any thread.
    package var statistics: ReceiptStatistics {
        var statistics = published.value
        (statistics.waiting, statistics.proven) = setup.log.counts
        return statistics
    }

    /// The statement for the sample chat, which has a table of receipts.
    package static var statementOfSampleChat: String { SampleChatSQL.receiptsOfSampleChat.text }
}

/// The parameters of a receipt writer.
struct ReceiptSetup: Sendable {
    let conninfo: String
    let statement: String
    let log: ReceiptLog
    let logger: Logger
    let timing: ReceiptTiming
}

package struct ReceiptTiming: Sendable {
    /// The time between two passes.
    package var interval: Duration = .milliseconds(250)
    /// The longest first wait after a failure; later waits double up to fifteen times as long.
    package var firstRetry: Duration = .seconds(1)
    /// The limit for writing the rest when the hub stops.
    package var stopping: Duration = .seconds(2)

    package init() {}
}

/// Counters since the writer's creation.
package struct ReceiptStatistics: Sendable, Equatable {
    /// Receipts that sockets proved; a row that two devices prove counts twice.
    package var proven = 0
    /// Proven receipts that are waiting to be written.
    package var waiting = 0
    /// Receipts that the statement accepted.
    package var written = 0
    /// Statements that wrote them.
    package var batches = 0
    /// Receipts that the statement refused; they are not retried.
    package var refused = 0
    /// Connections that were lost or could not be opened, and batches that have to be retried.
    package var failures = 0

    package init() {}
}

/// Writes receipts.
private struct ReceiptWorker: DatabaseWriter, ~Copyable {
    private let published: Published<ReceiptStatistics>
    private let log: ReceiptLog
    private var batches: ReceiptBatches

    init(_ setup: ReceiptSetup, _ published: Published<ReceiptStatistics>) {
        self.published = published
        log = setup.log
        batches = ReceiptBatches(setup)
    }

    mutating func startSession(on connection: PostgresConnection) throws {
        try connection.runScript(ReceiptSQL.receiptSession)
        batches.startSession()
    }

    mutating func connectionLost() { batches.statistics.failures += 1 }

    mutating func writeWaiting(on connection: PostgresConnection?, isLast: Bool) throws -> Bool {
        guard let connection else { return false }
        try batches.writeWaiting(on: connection, isLast: isLast)
        return !isWaiting
    }

    var isWaiting: Bool { log.counts.waiting > 0 }

    mutating func publishReport(isAllWritten: Bool) { published.value = batches.statistics }
}
