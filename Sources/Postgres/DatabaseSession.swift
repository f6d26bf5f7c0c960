import Glibc
import Logging
package import Workers

/// A plain session with a database, waiting on the calling thread: for the demo's set-up and for tests.
package final class DatabaseSession {
    private let connection: PostgresConnection

    /// - Throws: `PostgresError`.
    package init(conninfo: String) throws {
        connection = try PostgresConnection(conninfo)
    }

    /// Nothing more can be asked here; open another.
    package var isBroken: Bool { connection.isBroken }

    package var backendID: Int32 { connection.backendID }

    /// Runs several statements without parameters, as one transaction unless they say otherwise.
    package func run(_ script: String, within limit: Duration = .seconds(60)) throws {
        try connection.run(script, within: limit)
    }

    /// - Parameter parameters: for `$1`, `$2`, …, as text.
    package func rows(
        _ sql: String, _ parameters: [String?] = [], within limit: Duration = .seconds(60)
    ) throws -> [[String?]] {
        let rows = try connection.query(sql, parameters, within: limit)
        return (0..<rows.count).map { row in (0..<rows.width).map { rows.text(row, $0) } }
    }
}

extension PostgresConnection {
    /// A session for the command line and for tests: it waits on the calling thread, and says nothing in the log.
    ///
    /// - Parameter limit: for each host to connect.
    package convenience init(
        _ conninfo: String, waiter: any SocketWaiter = PlainWaiter(), within limit: Duration = .seconds(10)
    ) throws {
        // What the server has to say goes to the server's log; the command prints one sentence.
        let silent = Logger(label: "roost.admin") { _ in SwiftLogNoOpLogHandler() }
        try self.init(ConnectionOptions(conninfo: conninfo), waiter: waiter, logger: silent, within: limit)
        // The planner takes long statements on small catalogs for ones that pay to be compiled.
        try run("set jit = off")
    }
}

/// Waits until a socket is ready; a feed serves its other sockets and its inbox meanwhile.
package protocol SocketWaiter: AnyObject {
    /// - Throws: `PostgresError` of kind `timeout` when `deadline` passes first.
    func wait(for descriptor: Int32, events: Int16, until deadline: ContinuousClock.Instant) throws
}

/// Waits for the one socket and nothing else, and no longer than its thread may live.
package final class PlainWaiter: SocketWaiter {
    private let stop: StopSignal?

    /// - Parameter stop: where it is given, its deadline is that of every wait that goes on when it comes.
    package init(until stop: StopSignal? = nil) { self.stop = stop }

    package func wait(for descriptor: Int32, events: Int16, until deadline: ContinuousClock.Instant) throws {
        while true {
            let last = stop?.deadline
            let end = min(deadline, last ?? deadline)
            var polled = [pollfd(fd: descriptor, events: events, revents: 0)]
            // Once it was signaled it stays readable.
            if let stop, last == nil { polled.append(pollfd(fd: stop.descriptor, events: Int16(POLLIN), revents: 0)) }
            _ = poll(&polled, nfds_t(polled.count), milliseconds(until: end))
            if polled[0].revents != 0 { return }
            if ContinuousClock.now >= end { throw PostgresError(.timeout, "Postgres did not answer in time.") }
        }
    }
}
