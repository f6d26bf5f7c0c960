import Hub
import Logging
import Postgres

/// The session that reads and writes presence and users' status.
enum PresenceSession {
    /// - Parameter limit: for each host to connect.
    /// - Throws: `PostgresError` with a sentence where the server takes no writes, or where `roost migrate` is to be run.
    static func open(
        _ conninfo: String, waiter: any SocketWaiter, logger: Logger, within limit: Duration = .seconds(10)
    ) throws -> PostgresConnection {
        let connection = try PostgresConnection(
            ConnectionOptions(conninfo: conninfo), waiter: waiter, logger: logger, within: limit)
        try connection.run(SQL.sessionOfPresence)
        try Primary.demand(on: connection)
        try Migrator.demandCurrentSchema(on: connection)
        return connection
    }

    /// Presences of this node; what is no presence is left out, as others may have written to the table.
    static func presences(of node: String, on connection: PostgresConnection) throws -> [PresenceRecord] {
        let rows = try connection.query(SQL.storedPresence, [node])
        return (0..<rows.count).compactMap { PresenceRecord(rows, $0) }
    }

    static func onlineUsers(of node: String, on connection: PostgresConnection) throws -> [(user: String, seen: Int64)]
    {
        let rows = try connection.query(SQL.onlineUsers, [node])
        return (0..<rows.count).compactMap { row in
            guard let user = rows.text(row, 0), let seen = rows.integer(row, 1) else { return nil }
            return (user, seen)
        }
    }
}
