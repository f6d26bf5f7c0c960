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
        let rows = try connection.query(SQL.lockHolder, [table, readersCount ? "true" : "false"])
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
