import Postgres

/// The holder of a lock that a session waits for.
struct LockHolder: Equatable {
    /// Nil for a prepared transaction.
    let backendID: Int32?
    private let who: String
    private let since: String?
    private let statement: String?

    /// Reads the first row: process, application and state, start of its transaction, last statement.
    init?(_ rows: QueryResult) {
        guard rows.count > 0, let who = rows.text(0, 1) else { return nil }
        backendID = rows.integer(0, 0).flatMap { $0 > 0 ? Int32(truncatingIfNeeded: $0) : nil }
        self.who = who
        since = rows.text(0, 2)
        statement = rows.text(0, 3).flatMap { $0.isEmpty ? nil : $0 }
    }

    /// The session that keeps triggers from being added to a table or removed.
    ///
    /// - Parameters:
    ///   - table: an oid; nil for all tables of Roost and of realtime.
    ///   - readersCount: whether sessions that only read are in the way, too.
    /// - Throws: `PostgresError`.
    init?(of table: String?, readersCount: Bool, on connection: PostgresConnection) throws {
        let rows = try connection.query(LockSQL.lockHolder, [table, readersCount ? "true" : "false"])
        self.init(rows)
    }

    /// `process 123 (psql, idle in transaction; in a transaction since 12:00:01; last: update …)`.
    var description: String {
        guard let backendID else { return "a prepared transaction (see pg_prepared_xacts)" }
        let facts = [
            who.isEmpty ? nil : who, since.map { "in a transaction since \($0)" }, statement.map { "last: \($0)" },
        ]
        return "process \(backendID) (\(facts.compactMap { $0 }.joined(separator: "; ")))"
    }

    /// The means to make the holder release its lock.
    var remedy: String {
        backendID.map { "wait for it, or run `select pg_terminate_backend(\($0))`" } ?? "finish it"
    }
}

/// The patience of a command with a table in use.
///
/// A session that waits for a lock blocks all later ones that want a weaker lock, even if the holder would not. So a
/// command waits only for moments, and pauses in between to let the writers that queued up proceed.
package struct LockPatience: Sendable {
    /// The longest time in the lock queue, with writers waiting behind.
    package var turn: Duration = .milliseconds(200)
    /// The first pause; later ones double up to `longestPause`.
    package var firstPause: Duration = .milliseconds(400)
    package var longestPause: Duration = .seconds(3)
    /// The limit for one table.
    package var total: Duration

    package init(total: Duration = .seconds(60)) { self.total = total }

    /// The value for `lock_timeout`, in whole milliseconds.
    var turnText: String { "\(Int(turn / .milliseconds(1)))ms" }
}

/// The pauses between attempts at a lock. Pure.
struct LockWait {
    private let patience: LockPatience
    private var end: ContinuousClock.Instant?
    private var pause: Duration

    init(_ patience: LockPatience) {
        self.patience = patience
        pause = patience.firstPause
    }

    /// The pause before the next attempt; nil once the patience is exhausted.
    mutating func nextPause(at now: ContinuousClock.Instant) -> Duration? {
        let end = end ?? now + patience.total
        self.end = end
        guard now < end else { return nil }
        defer { pause = min(pause * 2, patience.longestPause) }
        return min(pause, end - now)
    }
}

/// Queries for the cause of a wait.
enum LockSQL: String, NamedStatement {
    case lockHolder, oldestWriter, sessionWait
    static let file = StatementFile("Locks.sql")
}
