import Postgres

/// The operator's statement that says who is to hear of changes (`alerts.audience`).
struct AudienceStatement {
    private let sql: String
    private static let trailing: Set<Character> = [" ", "\n", "\r", "\r\n", "\t", ";"]

    /// - Parameter statement: a query with the parameter `$1 jsonb`.
    init(_ statement: String) {
        sql = SQLTemplate(SQL.audience).filled(["statement": Self.bare(statement)])
    }

    /// As it can stand in brackets, where it takes no semicolon.
    static func bare(_ statement: String) -> String {
        let end = statement.lastIndex { !trailing.contains($0) }
        return end.map { String(statement[...$0]) } ?? ""
    }

    /// Runs it in a transaction of its own, in which it cannot write.
    ///
    /// - Throws: `PostgresError`; where the connection is not broken, nothing has happened to it.
    func run(_ parameter: String, on connection: PostgresConnection) throws -> QueryResult {
        do {
            try connection.run(SQL.audienceTurn)
            let rows = try connection.query(sql, [parameter])
            try connection.run("commit")
            return rows
        } catch let error as PostgresError where !connection.isBroken {
            try connection.run("rollback")
            throw error
        }
    }

    /// For `roost doctor`: the plan of it, without running it.
    func plan(on connection: PostgresConnection) throws { _ = try connection.query("explain " + sql, ["[]"]) }
}
