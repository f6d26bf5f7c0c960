import Logging

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
