import Hub
import Postgres

/// Finds users whom the database calls online at this hub and who are not, as when it could not be read at start-up, or
/// when a standby was promoted that had not heard that they went.
struct LeftOnes {
    private let node: String
    private let users: UserPresence
    private let report: @Sendable ([(user: String, seen: Int64)]) -> Void
    private var isDue = true

    init(node: String, users: UserPresence, report: @escaping @Sendable ([(user: String, seen: Int64)]) -> Void) {
        self.node = node
        self.users = users
        self.report = report
    }

    /// The connection is another.
    mutating func begin() { isDue = true }

    /// Once for each connection, when nothing is waiting to be written.
    ///
    /// - Throws: `PostgresError` where the connection is to be given up.
    mutating func look(on connection: PostgresConnection) throws {
        guard isDue, !users.hasTransitions else { return }
        let online: [(user: String, seen: Int64)]
        do {
            online = try PresenceSession.onlineUsers(of: node, on: connection)
        } catch let error as PostgresError where !connection.isBroken && error.kind == .server {
            // The writer complains of the same table.
            isDue = false
            return
        }
        let left = online.filter { !users.isOnline($0.user) }
        // Somebody went while it was read, and his row is about to be deleted: look again.
        guard !users.hasTransitions else { return }
        isDue = false
        if !left.isEmpty { report(left) }
    }
}
