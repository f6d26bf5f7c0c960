import Hub
import Postgres
import Wire

/// Tells the application of a batch of users, in one transaction: roost's note of who is online and the application's own
/// tables never say different things.
struct UserStatusTransaction {
    let node: String
    let statement: String
    let connection: PostgresConnection

    /// - Throws: `UserStatusFault`, and nothing has happened; `PostgresError` where the connection is to be given up.
    func write(_ transitions: ArraySlice<UserTransition>) throws {
        var users = TextArray()
        var online = TextArray()
        var times = TextArray()
        for transition in transitions {
            users.append(transition.user.utf8)
            online.append(transition.isOnline)
            times.append(transition.at)
        }
        try transaction { place in
            let changed = try connection.query(
                UserSQL.noteTransitions, [node, users.literal, online.literal, times.literal])
            place = .statement
            guard changed.integer(0, 0) ?? 0 > 0 else { return true }
            _ = try connection.query(statement, (1...3).map { changed.text(0, $0) })
            return true
        }
    }

    /// Whether all of it works where there is nobody to be told of: if not, it is not any user's fault.
    ///
    /// - Throws: as `write`.
    func rehearse() throws {
        try transaction { place in
            _ = try connection.query(UserSQL.noteTransitions, [node, "{}", "{}", "{}"])
            place = .statement
            _ = try connection.query(statement, ["{}", "{}", "{}"])
            return false
        }
    }

    /// - Parameter body: returns whether to commit; says whose SQL runs.
    private func transaction(_ body: (inout UserStatusFault.Place) throws -> Bool) throws {
        var place = UserStatusFault.Place.own
        do {
            try connection.run(UserSQL.beginTurn)
            let commits = try body(&place)
            try connection.run(commits ? "commit" : "rollback")
        } catch let error as PostgresError where !connection.isBroken {
            try connection.run("rollback")
            throw UserStatusFault(place: place, error: error)
        }
    }
}

/// Why users could not be told of.
struct UserStatusFault: Error {
    enum Place {
        /// roost's own tables.
        case own
        /// What the application configured, and what its triggers and constraints make of it.
        case statement
    }

    let place: Place
    let error: PostgresError

    /// Whether the very same may go well a little later: locks, deadlocks, deadlines, a full disk, a server that takes
    /// no writes (Postgres, appendix A).
    var isPassing: Bool {
        guard let state = error.sqlState else { return true }
        return ["25", "40", "53", "55", "57", "58"].contains { state.hasPrefix($0) }
    }
}

/// Finds users whom the database calls online at this hub and who are not, as when it could not be read at start-up, or
/// when a standby was promoted that had not heard that they went.
struct StaleUsers {
    private let node: String
    private let users: UserPresence
    private let report: @Sendable ([(user: Name, seen: Int64)]) -> Void
    private var isDue = true

    init(node: String, users: UserPresence, report: @escaping @Sendable ([(user: Name, seen: Int64)]) -> Void) {
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
        let online: [(user: Name, seen: Int64)]
        do {
            online = try PresenceSession.onlineUsers(of: node, on: connection)
        } catch let error as PostgresError where !connection.isBroken && error.kind == .server {
            // The writer logs the same of that table.
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
