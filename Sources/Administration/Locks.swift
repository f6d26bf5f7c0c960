import Postgres

/// Who holds a lock that something waits for.
struct LockHolder: Equatable {
    /// Nil: a prepared transaction.
    let backendID: Int32?
    private let who: String
    private let since: String?
    private let statement: String?

    /// The first row's: the process, who it is, since when its transaction is open, what it last asked.
    init?(_ rows: QueryResult) {
        guard rows.count > 0, let who = rows.text(0, 1) else { return nil }
        backendID = rows.integer(0, 0).flatMap { $0 > 0 ? Int32(truncatingIfNeeded: $0) : nil }
        self.who = who
        since = rows.text(0, 2)
        statement = rows.text(0, 3).flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Who keeps a trigger from being put on a table, or taken off.
    ///
    /// - Parameters:
    ///   - table: an oid; nil: any of roost's own, and those of realtime.
    ///   - readersCount: whether who only reads is in the way, too.
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

    /// What makes it let go.
    var remedy: String {
        backendID.map { "wait for it, or run `select pg_terminate_backend(\($0))`" } ?? "finish it"
    }
}

/// How a command waits for a table that is in use.
///
/// Whoever waits for a lock makes all wait who come after him and want a weaker one, though the holder would not mind
/// them. So a command waits for moments only, and leaves pauses in which the writers that came meanwhile get on.
package struct LockPatience: Sendable {
    /// The longest that it stands in the queue, and writers behind it.
    package var turn: Duration = .milliseconds(200)
    /// The first pause; doubled up to `longestPause`.
    package var firstPause: Duration = .milliseconds(400)
    package var longestPause: Duration = .seconds(3)
    /// For one table, all in all.
    package var total: Duration

    package init(total: Duration = .seconds(60)) { self.total = total }

    /// As `lock_timeout` is set, in whole milliseconds.
    var turnText: String { "\(Int(turn / .milliseconds(1)))ms" }
}

/// The pauses between tries for a lock. Pure.
struct LockWait {
    private let patience: LockPatience
    private var end: ContinuousClock.Instant?
    private var pause: Duration

    init(_ patience: LockPatience) {
        self.patience = patience
        pause = patience.firstPause
    }

    /// How long to wait before the next try; nil where the patience is over.
    mutating func next(at now: ContinuousClock.Instant) -> Duration? {
        let end = end ?? now + patience.total
        self.end = end
        guard now < end else { return nil }
        defer { pause = min(pause * 2, patience.longestPause) }
        return min(pause, end - now)
    }
}

/// Who holds up a command that waits.
enum LockSQL: String, NamedStatement {
    case lockHolder, oldestWriter, sessionWait
    static let file = StatementFile("Locks.sql")
}
