import Postgres

/// Why users could not be told of.
struct UserFault: Error {
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
