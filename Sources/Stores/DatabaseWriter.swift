import Glibc
import Logging
import Postgres
import Workers

/// What a thread does that writes something down again and again (`WriterThread`).
protocol DatabaseWriter: ~Copyable {
    /// There is another connection.
    mutating func begin(on connection: PostgresConnection) throws

    /// Writes what waits.
    ///
    /// - Parameters:
    ///   - connection: nil while there is none.
    ///   - isLast: nothing is written after it.
    /// - Returns: whether nothing waits any more.
    /// - Throws: if the connection is to be given up.
    mutating func write(on connection: PostgresConnection?, isLast: Bool) throws -> Bool

    /// A connection was lost, or not made.
    mutating func lost()

    /// A pass is over: others may look at what became of it.
    mutating func publish(isAllWritten: Bool)

    /// Whether something is to be written.
    var isWaiting: Bool { get }
}

/// The life of such a thread: connect, write in passes until the database goes away, try again; and write the rest at the end.
struct WriterThread<Writer: DatabaseWriter & ~Copyable>: ~Copyable {
    private var writer: Writer
    private let conninfo: String
    private let interval: Duration
    private let stopSignal: StopSignal
    private let logger: Logger
    private var connection: PostgresConnection?
    private var reconnector: Reconnector

    /// - Parameters:
    ///   - interval: between two passes.
    ///   - reconnector: says that the database is away.
    init(
        _ writer: consuming Writer, conninfo: String, interval: Duration, stopSignal: StopSignal, logger: Logger,
        reconnector: Reconnector
    ) {
        self.writer = writer
        self.conninfo = conninfo
        self.interval = interval
        self.stopSignal = stopSignal
        self.logger = logger
        self.reconnector = reconnector
    }

    /// - Returns: whether all was written when it ended.
    mutating func run() -> Bool {
        while !stopSignal.isStopping {
            let begin = ContinuousClock.now
            if connection == nil, reconnector.isDue { connect() }
            let isAllWritten = write(isLast: false)
            writer.publish(isAllWritten: isAllWritten)
            rest(until: begin + interval)
        }
        defer { connection = nil }
        return finish()
    }

    private mutating func connect() {
        do {
            let fresh = try PresenceSession.open(conninfo, waiter: PlainWaiter(until: stopSignal), logger: logger)
            try writer.begin(on: fresh)
            connection = fresh
            reconnector.connected()
        } catch {
            lost(because: error)
        }
    }

    private mutating func lost(because error: any Error) {
        connection = nil
        writer.lost()
        reconnector.failed(error, isStopping: stopSignal.isStopping)
    }

    private mutating func write(isLast: Bool) -> Bool {
        do { return try writer.write(on: connection, isLast: isLast) } catch {
            lost(because: error)
            return false
        }
    }

    /// Waits for the next pass, or the end. A connection that goes away meanwhile is noticed at once: what was written there may be gone
    /// by then, though nothing has changed here.
    private mutating func rest(until end: ContinuousClock.Instant) {
        while !stopSignal.isStopping, ContinuousClock.now < end {
            var polled = [
                pollfd(fd: stopSignal.descriptor, events: Int16(POLLIN), revents: 0),
                pollfd(fd: connection?.descriptor ?? -1, events: Int16(POLLIN), revents: 0),
            ]
            guard poll(&polled, nfds_t(polled.count), milliseconds(until: end)) > 0, polled[1].revents != 0 else {
                continue
            }
            do { _ = try connection?.takeNotifications() } catch { lost(because: error) }
        }
    }

    /// Writes the rest, as far as there is time.
    private mutating func finish() -> Bool {
        guard writer.isWaiting || connection != nil else { return true }
        if connection == nil { connect() }
        var isAllWritten = write(isLast: true)
        if connection == nil {
            // It had been lost before and nobody noticed.
            connect()
            isAllWritten = write(isLast: true)
        }
        writer.publish(isAllWritten: isAllWritten)
        return isAllWritten || !writer.isWaiting
    }
}
