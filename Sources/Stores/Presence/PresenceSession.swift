package import Hub
import Logging
import Postgres
import Schema
package import Wire

/// The presences and users that a hub's last process stored.
package struct RestoredPresence: Sendable {
    package var presences: [PresenceRecord] = []
    /// Users that the application was told are online, with the last time at which they are known to have been, in
    /// milliseconds since 1970.
    package var users: [(user: Name, seen: Int64)] = []

    package init() {}

    /// - Parameter outcome: the result of reading; nil if that took too long. Empty after a failure or a timeout.
    init(_ outcome: Result<RestoredPresence, any Error>?, logger: Logger) {
        let reason: String
        switch outcome {
        case .success(let restored):
            self = restored
            return
        case .failure(let error as PostgresError) where error.kind == .server && error.sqlState == nil:
            // `roost migrate` has not run, so there is nothing to lose; the feed reports what to do.
            logger.debug("No presences are restored: \(error)")
            return
        case .failure(let error): reason = "\(error)"
        case nil: reason = "The database's host did not answer in time."
        }
        logger.warning("Presences from before the restart are lost, as the database cannot be read: \(reason)")
    }
}

/// Opens sessions for reading and writing presence and users' status.
enum PresenceSession {
    /// - Parameter limit: the time to connect, per host.
    /// - Throws: `PostgresError` with a sentence if the server takes no writes, or if `roost migrate` has to be run.
    static func openSession(
        _ conninfo: String, waiter: any SocketWaiter, logger: Logger, within limit: Duration = .seconds(10)
    ) throws -> PostgresConnection {
        let connection = try PostgresConnection(
            ConnectionOptions(conninfo: conninfo), waiter: waiter, logger: logger, within: limit)
        try connection.runScript(PresenceSQL.presenceSession)
        try Primary.demandPrimary(on: connection)
        try RoostSchema.demandCurrent(on: connection)
        return connection
    }

    /// The presences of this node. Invalid rows are skipped, as others may have written to the table.
    static func presences(of node: String, on connection: PostgresConnection) throws -> [PresenceRecord] {
        let rows = try connection.query(PresenceSQL.storedPresence, [node])
        return (0..<rows.count).compactMap { PresenceRecord(rows, $0) }
    }

    static func onlineUsers(of node: String, on connection: PostgresConnection) throws -> [(user: Name, seen: Int64)] {
        let rows = try connection.query(UserSQL.onlineUsers, [node])
        return (0..<rows.count).compactMap { row in
            guard let user = rows.name(row, 0), let seen = rows.boundedInteger(row, 1) else { return nil }
            return (user, seen)
        }
    }
}

extension PresenceRecord {
    /// Parses a row of the statement `storedPresence`.
    init?(_ rows: QueryResult, _ row: Int) {
        guard let ref = rows.text(row, 0), let topic = rows.text(row, 1), let key = rows.text(row, 3),
            let payload = rows.bytes(row, 6).map(Array.init),
            topic.utf8.starts(with: ChannelKey.prefix.utf8), Self.isObject(payload)
        else { return nil }
        self.init(
            channel: ChannelKey(topic: StoredText.decode(topic), isPrivate: rows.flag(row, 2)), ref: Name(ref),
            key: StoredText.decode(key), hasMadeKey: rows.flag(row, 4),
            user: rows.text(row, 5).map { Name(StoredText.decode($0)) },
            payload: payload, appState: rows.text(row, 7).flatMap { ReportedAppState(rawValue: $0) })
    }

    /// Frames for clients are spliced from it, so it must be well-formed.
    private static func isObject(_ bytes: [UInt8]) -> Bool {
        do { return try JSON(parsing: bytes).kind == .object } catch { return false }
    }
}
