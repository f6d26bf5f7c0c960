package import Hub
package import Logging
import Postgres
import Wire
import Workers

/// Tells the application of proven receipts, by the statement it has configured (`receipts.statement`).
///
/// It has one thread and one session of its own: a statement that is slow, or waits for a lock, holds up nothing but receipts. While the
/// database is away they wait in the `ReceiptLog`.
package final class ReceiptWriter: Sendable {
    private let setup: ReceiptSetup
    private let stopSignal = StopSignal()
    private let published = Published(ReceiptStatistics())
    private let thread = WorkerThread(named: "roost-receipts")

    /// - Parameter statement: SQL with the parameters `$1::text[]`, the users, `$2::text[]`, the tables, `$3::jsonb[]`, the rows' primary
    ///   keys, `$4::timestamptz[]`, when it was proven, and `$5::text[]`, `delivered` or `shown`.
    package init(
        conninfo: String, statement: String, log: ReceiptLog, logger: Logger,
        timing: ReceiptTiming = ReceiptTiming()
    ) {
        setup = ReceiptSetup(conninfo: conninfo, statement: statement, log: log, logger: logger, timing: timing)
    }

    /// Starts the thread; it connects, and keeps trying. Once in the life of a writer.
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
            // What is left, clients that come back prove again (`ReceiptLog`).
            _ = worker.run()
        }
    }

    /// Writes what waits and ends the thread. One that hangs is left behind after `timing.stopping`.
    package func stop() {
        let deadline = ContinuousClock.now + setup.timing.stopping
        stopSignal.stop(by: deadline)
        thread.join(by: deadline + .milliseconds(100))
    }

    /// From any thread; a pass old.
    package var statistics: ReceiptStatistics {
        var statistics = published.value
        (statistics.waiting, statistics.proven) = setup.log.counts
        return statistics
    }

    /// The statement for the sample chat, which has a table of receipts.
    package static var statementOfSampleChat: String { SampleChatSQL.receiptsOfSampleChat.text }
}

/// What a writer of receipts works with.
struct ReceiptSetup: Sendable {
    let conninfo: String
    let statement: String
    let log: ReceiptLog
    let logger: Logger
    let timing: ReceiptTiming
}

package struct ReceiptTiming: Sendable {
    /// Between two looks at what is to be written.
    package var interval: Duration = .milliseconds(250)
    /// The longest first wait after a failure; doubled up to fifteen times as long.
    package var firstRetry: Duration = .seconds(1)
    /// For writing the rest when the hub stops.
    package var stopping: Duration = .seconds(2)

    package init() {}
}

/// Counters since the writer was made.
package struct ReceiptStatistics: Sendable, Equatable {
    /// Receipts that sockets proved; a row that two devices prove counts twice.
    package var proven = 0
    /// Of these, how many wait to be written.
    package var waiting = 0
    /// Receipts that the statement took.
    package var written = 0
    /// Statements that wrote them.
    package var batches = 0
    /// Receipts that the statement refused; they are not tried again.
    package var refused = 0
    /// Connections that were lost or not made, and batches that have to be tried again.
    package var failures = 0

    package init() {}
}

/// Writes down receipts.
private struct ReceiptWorker: DatabaseWriter, ~Copyable {
    private let published: Published<ReceiptStatistics>
    private let log: ReceiptLog
    private var batches: ReceiptBatches

    init(_ setup: ReceiptSetup, _ published: Published<ReceiptStatistics>) {
        self.published = published
        log = setup.log
        batches = ReceiptBatches(setup)
    }

    mutating func begin(on connection: PostgresConnection) throws {
        try connection.run(ReceiptSQL.receiptSession)
        batches.begin()
    }

    mutating func lost() { batches.statistics.failures += 1 }

    mutating func write(on connection: PostgresConnection?, isLast: Bool) throws -> Bool {
        guard let connection else { return false }
        try batches.write(on: connection, isLast: isLast)
        return !isWaiting
    }

    var isWaiting: Bool { log.counts.waiting > 0 }

    mutating func publish(isAllWritten: Bool) { published.value = batches.statistics }
}
