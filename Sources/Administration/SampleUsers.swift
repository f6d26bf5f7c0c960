import Postgres

/// Draws values that may be user ids from a table and from the tables that its policies read.
struct SampleUsers {
    private static let most = 20

    /// The table's oid.
    let table: String
    /// A column that visibility depends on; no users are drawn from it.
    let column: String?
    let members: [UInt32]
    let connection: PostgresConnection

    /// Draws values of `sub` that policies may know, from the candidate columns in turn; at most 20.
    ///
    /// - Parameter values: values of `column` that restrict the rows drawn, if a table has that column.
    /// - Throws: `PostgresError`.
    func drawUsers(from values: [String]) throws -> [String] {
        let oids = "{" + members.map(String.init).joined(separator: ",") + "}"
        let statements = try connection.query(WatchingSQL.scopeUsers, [table, column ?? "", oids])
        let columns = try (0..<statements.count).compactMap { statements.text($0, 0) }.map { statement in
            let rows = try connection.query(statement, [Self.arrayLiteral(values)])
            return (0..<rows.count).compactMap { rows.text($0, 0) }
        }
        var users: [String] = []
        for index in 0..<(columns.map(\.count).max() ?? 0) {
            for column in columns where index < column.count && !users.contains(column[index]) {
                users.append(column[index])
            }
        }
        return Array(users.prefix(Self.most))
    }

    static func arrayLiteral(_ values: [String]) -> String {
        var array = TextArray()
        for value in values { array.append(value.utf8) }
        return array.literal
    }
}
