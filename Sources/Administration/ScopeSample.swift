import ChangeFeed
import Postgres

/// Compares rows of one scope value as users see them: a scope holds if each user sees all of them or none.
///
/// Selects as `authenticated` with the users' claims, in a read-only transaction that is rolled back.
struct ScopeSample {
    enum Verdict: Equatable {
        /// - Parameters:
        ///   - rows: the number of compared rows.
        ///   - users: the number of users for whom the policies did not fail.
        case holds(rows: Int, users: Int)
        /// Some user sees one row of a scope value but not another.
        case fails
        /// The reason, a clause without a full stop.
        case unknown(String)
    }

    private struct Row: Hashable {
        let partition: String
        let place: String
    }

    /// The limit for all statements of one scope; then the comparisons so far decide.
    private static let patience = Duration.seconds(10)

    let scope: DeclaredScope
    let connection: PostgresConnection

    /// - Throws: `PostgresError`.
    func compareVisibility() throws -> Verdict {
        guard try connection.query("select from pg_roles where rolname = 'authenticated'").count == 1 else {
            return .unknown("there is no role authenticated")
        }
        try connection.runScript("begin isolation level repeatable read read only; set local statement_timeout = '3s'")
        do {
            let verdict = try compareRows(until: .now + Self.patience)
            try connection.runScript("rollback")
            return verdict
        } catch {
            if !connection.isBroken { try connection.runScript("rollback") }
            throw error
        }
    }

    private func compareRows(until deadline: ContinuousClock.Instant) throws -> Verdict {
        let statements = try connection.query(
            WatchingSQL.scopeRows, [String(scope.oid), SampleUsers.arrayLiteral(scope.columns.map(\.text))])
        guard let draw = statements.text(0, 0), let look = statements.text(0, 1) else {
            return .unknown("the table is gone")
        }
        let (groups, firsts) = try drawRows(draw)
        guard !groups.isEmpty else { return .unknown("no scope value has several rows") }
        let all = groups.values.flatMap { $0 }
        let places = "{" + Set(all.map(\.place)).map { "\"\($0)\"" }.joined(separator: ",") + "}"
        var asked = 0
        var refusal = "there is no column that could hold users' ids"
        let users = SampleUsers(
            table: String(scope.oid), column: scope.columns.first?.text, members: scope.members, connection: connection)
        for user in try users.drawUsers(from: Array(firsts)) where ContinuousClock.now < deadline {
            do {
                let seen = try visibleRows(look, at: places, to: user)
                asked += 1
                let differs = groups.values.contains { rows in
                    let count = rows.count { seen.contains($0) }
                    return count != 0 && count != rows.count
                }
                if differs { return .fails }
            } catch let error as PostgresError where error.kind == .server {
                // A policy that fails for a user shows nothing to that user; the hub does the same. Postgres' message
                // may contain values of rows, which must not be shown here.
                refusal =
                    error.sqlState == SQLState.insufficientPrivilege
                    ? "authenticated may not read the table or what its policies read"
                    : "the policies failed for all users that were tried, with SQLSTATE \(error.sqlState ?? "unknown")"
                try connection.runScript("rollback to savepoint before")
            }
        }
        return asked > 0 ? .holds(rows: all.count, users: asked) : .unknown(refusal)
    }

    /// The rows of each scope value, and the values of the first scope column.
    private func drawRows(_ draw: String) throws -> (groups: [String: [Row]], firsts: Set<String>) {
        let rows = try connection.query(draw)
        var groups: [String: [Row]] = [:]
        var firsts: Set<String> = []
        for row in 0..<rows.count {
            guard let scope = rows.text(row, 0), let found = Self.parseRow(rows, row, 2) else { continue }
            groups[scope, default: []].append(found)
            if let first = rows.text(row, 1) { firsts.insert(first) }
        }
        return (groups, firsts)
    }

    private static func parseRow(_ rows: QueryResult, _ row: Int, _ column: Int) -> Row? {
        guard let partition = rows.text(row, column), let place = rows.text(row, column + 1) else { return nil }
        return Row(partition: partition, place: place)
    }

    private func visibleRows(_ look: String, at places: String, to user: String) throws -> Set<Row> {
        try connection.runScript("savepoint before")
        _ = try connection.query(
            """
            select set_config('request.jwt.claims', c::text, true),
                   set_config('request.jwt.claim.sub', $1, true),
                   set_config('request.jwt.claim.role', 'authenticated', true)
            from json_build_object('sub', $1::text, 'role', 'authenticated') c
            """, [user])
        try connection.runScript("set local role authenticated")
        let rows = try connection.query(look, [places])
        try connection.runScript("rollback to savepoint before; release savepoint before")
        return Set((0..<rows.count).compactMap { Self.parseRow(rows, $0, 0) })
    }
}
