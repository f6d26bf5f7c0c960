import Hub
import Postgres
import Wire

/// Tells the application about a batch of users in one transaction, so that Roost's record of online users and the
/// application's tables never contradict each other.
struct UserStatusTransaction {
    let node: String
    let statement: String
    let connection: PostgresConnection

    /// - Throws: `UserStatusFault`, in which case nothing has changed; `PostgresError` if the connection has to be
    ///   abandoned.
    func writeTransitions(_ transitions: ArraySlice<UserTransition>) throws {
        var users = TextArray()
        var online = TextArray()
        var times = TextArray()
        for transition in transitions {
            users.append(transition.user.utf8)
            online.append(transition.isOnline)
            times.append(transition.at)
        }
        try runTransaction { place in
            let changed = try connection.query(
                UserSQL.noteTransitions, [node, users.literal, online.literal, times.literal])
            place = .statement
            guard changed.integer(0, 0) ?? 0 > 0 else { return true }
            _ = try connection.query(statement, (1...3).map { changed.text(0, $0) })
            return true
        }
    }

    /// Runs everything without users: if that fails, no user is the cause.
    ///
    /// - Throws: as for writing.
    func rehearseStatement() throws {
        try runTransaction { place in
            _ = try connection.query(UserSQL.noteTransitions, [node, "{}", "{}", "{}"])
            place = .statement
            _ = try connection.query(statement, ["{}", "{}", "{}"])
            return false
        }
    }

    /// - Parameter body: returns whether to commit, and sets whose SQL is running.
    private func runTransaction(_ body: (inout UserStatusFault.Place) throws -> Bool) throws {
        var place = UserStatusFault.Place.own
        do {
            try connection.runScript(UserSQL.beginTurn)
            let commits = try body(&place)
            try connection.runScript(commits ? "commit" : "rollback")
        } catch let error as PostgresError where !connection.isBroken {
            try connection.runScript("rollback")
            throw UserStatusFault(place: place, error: error)
        }
    }
}

/// The reason why users' status could not be written.
struct UserStatusFault: Error {
    enum Place {
        /// Roost's own tables.
        case own
        /// The configured statement, with the application's triggers and constraints.
        case statement
    }

    let place: Place
    let error: PostgresError

    /// Whether a retry may succeed: locks, deadlocks, timeouts, a full disk, a server that takes no writes (Postgres,
    /// appendix A).
    var isPassing: Bool {
        guard let state = error.sqlState else { return true }
        return ["25", "40", "53", "55", "57", "58"].contains { state.hasPrefix($0) }
    }
}

/// Finds users that the database wrongly lists as online at this hub, for example because it could not be read at the
/// start, or because a promoted standby lacked their last transitions.
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

    /// Prepares for a new connection.
    mutating func startSession() { isDue = true }

    /// Runs once per connection, when nothing is waiting to be written.
    ///
    /// - Throws: `PostgresError` if the connection has to be abandoned.
    mutating func findStale(on connection: PostgresConnection) throws {
        guard isDue, !users.hasTransitions else { return }
        let online: [(user: Name, seen: Int64)]
        do {
            online = try PresenceSession.onlineUsers(of: node, on: connection)
        } catch let error as PostgresError where !connection.isBroken && error.kind == .server {
            // The writer logs the same problem of that table.
            isDue = false
            return
        }
        let left = online.filter { !users.isOnline($0.user) }
        // A user went offline during the query, whose row is about to be deleted: check again.
        guard !users.hasTransitions else { return }
        isDue = false
        if !left.isEmpty { report(left) }
    }
}
