import Postgres

/// Draws values that may be users' ids from a table and from those that its policies read.
struct SampleUsers {
    private static let most = 20

    /// The oid.
    let table: String
    /// One that visibility depends on, and that no user is drawn from.
    let column: String?
    let members: [UInt32]
    let connection: PostgresConnection

    /// Values of `sub` that policies may know, taken from the columns in turn; at most 20.
    ///
    /// - Parameter values: of the column, whose rows are drawn from where a table has it.
    /// - Throws: `PostgresError`.
    func draw(from values: [String]) throws -> [String] {
        let oids = "{" + members.map(String.init).joined(separator: ",") + "}"
        let statements = try connection.query(WatchingSQL.scopeUsers, [table, column ?? "", oids])
        let columns = try (0..<statements.count).compactMap { statements.text($0, 0) }.map { statement in
            let rows = try connection.query(statement, [Self.array(values)])
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

    static func array(_ values: [String]) -> String {
        var array = TextArray()
        for value in values { array.append(value.utf8) }
        return array.literal
    }
}
