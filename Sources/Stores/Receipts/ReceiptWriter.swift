import Glibc
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
            var worker = ReceiptWorker(setup, stopSignal, published)
            worker.run()
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

/// The life of the thread that writes receipts: connect, write in passes until the database goes away, try again.
private struct ReceiptWorker: ~Copyable {
    private let setup: ReceiptSetup
    private let stopSignal: StopSignal
    private let published: Published<ReceiptStatistics>
    private var batches: ReceiptBatches
    private var connection: PostgresConnection?
    private var reconnector: Reconnector

    init(_ setup: ReceiptSetup, _ stopSignal: StopSignal, _ published: Published<ReceiptStatistics>) {
        self.setup = setup
        self.stopSignal = stopSignal
        self.published = published
        batches = ReceiptBatches(setup)
        reconnector = Reconnector(
            first: setup.timing.firstRetry, logger: setup.logger,
            lost: "Receipts are not written to the database for now; the hub keeps trying",
            regained: "Receipts are written to the database again.")
    }

    mutating func run() {
        while !stopSignal.isStopping {
            let begin = ContinuousClock.now
            if connection == nil, reconnector.isDue { connect() }
            write(isLast: false)
            rest(until: begin + setup.timing.interval)
        }
        if connection == nil { connect() }
        write(isLast: true)
        connection = nil
    }

    private mutating func connect() {
        do {
            connection = try PresenceSession.open(
                setup.conninfo, waiter: PlainWaiter(until: stopSignal), logger: setup.logger)
            try connection?.run(ReceiptSQL.receiptSession)
            reconnector.connected()
            batches.begin()
        } catch {
            lost(because: error)
        }
    }

    private mutating func lost(because error: any Error) {
        connection = nil
        batches.statistics.failures += 1
        reconnector.failed(error, isStopping: stopSignal.isStopping)
    }

    private mutating func write(isLast: Bool) {
        defer { published.value = batches.statistics }
        guard let connection else { return }
        do { try batches.write(on: connection, isLast: isLast) } catch { lost(because: error) }
    }

    private func rest(until end: ContinuousClock.Instant) {
        while !stopSignal.isStopping, ContinuousClock.now < end {
            var polled = pollfd(fd: stopSignal.descriptor, events: Int16(POLLIN), revents: 0)
            _ = poll(&polled, 1, milliseconds(until: end))
        }
    }
}
