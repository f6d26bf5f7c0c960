import Glibc
import Logging
import Postgres
import Workers

/// The work of a thread that repeatedly writes to the database (`WriterThread`).
protocol DatabaseWriter: ~Copyable {
    /// Prepares a new connection.
    mutating func startSession(on connection: PostgresConnection) throws

    /// Writes what is waiting.
    ///
    /// - Parameters:
    ///   - connection: nil while there is none.
    ///   - isLast: true for the last write.
    /// - Returns: true if nothing is waiting any more.
    /// - Throws: if the connection has to be abandoned.
    mutating func writeWaiting(on connection: PostgresConnection?, isLast: Bool) throws -> Bool

    /// Notes that a connection was lost, or could not be opened.
    mutating func connectionLost()

    /// Publishes the result of a pass to other threads.
    mutating func publishReport(isAllWritten: Bool)

    /// Whether anything is waiting to be written.
    var isWaiting: Bool { get }
}

/// The loop of such a thread: connect, write in passes until the connection is lost, try again, and write the rest at
/// the end.
struct WriterThread<Writer: DatabaseWriter & ~Copyable>: ~Copyable {
    private var writer: Writer
    private let conninfo: String
    private let interval: Duration
    private let stopSignal: StopSignal
    private let logger: Logger
    private var connection: PostgresConnection?
    private var reconnector: Reconnector

    /// - Parameters:
    ///   - interval: the time between two passes.
    ///   - reconnector: schedules and logs reconnecting.
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

    /// - Returns: true if everything was written at the end.
    mutating func runUntilStopped() -> Bool {
        while !stopSignal.isStopping {
            let begin = ContinuousClock.now
            if connection == nil, reconnector.isDue { connect() }
            let isAllWritten = writePass(isLast: false)
            writer.publishReport(isAllWritten: isAllWritten)
            waitForPass(until: begin + interval)
        }
        defer { connection = nil }
        return writeRest()
    }

    private mutating func connect() {
        do {
            let fresh = try PresenceSession.openSession(
                conninfo, waiter: PlainWaiter(until: stopSignal), logger: logger)
            try writer.startSession(on: fresh)
            connection = fresh
            reconnector.connectionOpened()
        } catch {
            connectionLost(because: error)
        }
    }

    private mutating func connectionLost(because error: any Error) {
        connection = nil
        writer.connectionLost()
        reconnector.connectionFailed(error, isStopping: stopSignal.isStopping)
    }

    private mutating func writePass(isLast: Bool) -> Bool {
        do { return try writer.writeWaiting(on: connection, isLast: isLast) } catch {
            connectionLost(because: error)
            return false
        }
    }

    /// Waits for the next pass, or for the stop. A lost connection is noticed at once: data written on it may be gone
    /// then, even though nothing has changed here.
    private mutating func waitForPass(until end: ContinuousClock.Instant) {
        while !stopSignal.isStopping, ContinuousClock.now < end {
            var polled = [
                pollfd(fd: stopSignal.descriptor, events: Int16(POLLIN), revents: 0),
                pollfd(fd: connection?.descriptor ?? -1, events: Int16(POLLIN), revents: 0),
            ]
            guard poll(&polled, nfds_t(polled.count), milliseconds(until: end)) > 0, polled[1].revents != 0 else {
                continue
            }
            do { _ = try connection?.takeNotifications() } catch { connectionLost(because: error) }
        }
    }

    /// Writes the rest, as far as time permits.
    private mutating func writeRest() -> Bool {
        guard writer.isWaiting || connection != nil else { return true }
        if connection == nil { connect() }
        var isAllWritten = writePass(isLast: true)
        if connection == nil {
            // The connection had been lost earlier, unnoticed.
            connect()
            isAllWritten = writePass(isLast: true)
        }
        writer.publishReport(isAllWritten: isAllWritten)
        return isAllWritten || !writer.isWaiting
    }
}
