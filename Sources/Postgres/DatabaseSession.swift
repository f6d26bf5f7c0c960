import Glibc
import Logging
package import Workers

/// A plain session with a database that waits on the calling thread: for the demo's setup and for tests.
package final class DatabaseSession {
    private let connection: PostgresConnection

    /// - Throws: `PostgresError`.
    package init(conninfo: String) throws {
        connection = try PostgresConnection(conninfo)
    }

    /// True when the session can no longer be used and another must be opened.
    package var isBroken: Bool { connection.isBroken }

    package var backendID: Int32 { connection.backendID }

    /// Runs several statements without parameters, as one transaction unless they say otherwise.
    package func runScript(_ script: String, within limit: Duration = .seconds(60)) throws {
        try connection.runScript(script, within: limit)
    }

    /// - Parameter parameters: values of `$1`, `$2`, …, as text.
    package func queryRows(
        _ sql: String, _ parameters: [String?] = [], within limit: Duration = .seconds(60)
    ) throws -> [[String?]] {
        let rows = try connection.query(sql, parameters, within: limit)
        return (0..<rows.count).map { row in (0..<rows.width).map { rows.text(row, $0) } }
    }
}

extension PostgresConnection {
    /// A session for the command line and for tests, which waits on the calling thread and logs nothing.
    ///
    /// - Parameter limit: time for each host to connect.
    package convenience init(
        _ conninfo: String, waiter: any SocketWaiter = PlainWaiter(), within limit: Duration = .seconds(10)
    ) throws {
        // The server's notices stay in the server's log; the command prints one sentence.
        let silent = Logger(label: "roost.admin") { _ in SwiftLogNoOpLogHandler() }
        try self.init(ConnectionOptions(conninfo: conninfo), waiter: waiter, logger: silent, within: limit)
        // On small catalogs the planner overestimates long statements and would JIT-compile them.
        try runScript("set jit = off")
    }
}

/// Waits until a socket is ready; a feed serves its other sockets and its inbox meanwhile.
package protocol SocketWaiter: AnyObject {
    /// - Throws: `PostgresError` of kind `timeout` when `deadline` passes first.
    func wait(for descriptor: Int32, events: Int16, until deadline: ContinuousClock.Instant) throws
}

/// Waits for one socket only, and never past its thread's deadline.
package final class PlainWaiter: SocketWaiter {
    private let stop: StopSignal?

    /// - Parameter stop: once it is signaled, its deadline also limits every wait under way.
    package init(until stop: StopSignal? = nil) { self.stop = stop }

    package func wait(for descriptor: Int32, events: Int16, until deadline: ContinuousClock.Instant) throws {
        while true {
            let last = stop?.deadline
            let end = min(deadline, last ?? deadline)
            var polled = [pollfd(fd: descriptor, events: events, revents: 0)]
            // Once signaled, the descriptor stays readable.
            if let stop, last == nil { polled.append(pollfd(fd: stop.descriptor, events: Int16(POLLIN), revents: 0)) }
            _ = poll(&polled, nfds_t(polled.count), milliseconds(until: end))
            if polled[0].revents != 0 { return }
            if ContinuousClock.now >= end { throw PostgresError(.timeout, "Postgres did not answer in time.") }
        }
    }
}
