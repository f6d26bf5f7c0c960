import Postgres

/// A table as a command names it, looked up.
struct NamedTable {
    let oid: String
    /// Schema and name, quoted where they must be.
    let name: String

    /// - Throws: `AdminError` where it is nothing that can be watched.
    init(_ given: String, on connection: PostgresConnection) throws {
        let rows: QueryResult
        do {
            rows = try connection.query(SQL.describeTable, [given])
        } catch let error as PostgresError where Self.noName.contains(error.sqlState ?? "") {
            throw AdminError("\"\(given)\" is not a table's name; write table, schema.table or \"Quoted\".\"Name\".")
        }
        guard rows.count == 1, let oid = rows.text(0, 0), let name = rows.text(0, 3) else {
            throw AdminError("There is no table \(given); name it as schema.table, and quote names with capitals.")
        }
        if let reason = Self.refusal(of: rows, named: name) { throw AdminError(reason) }
        self.oid = oid
        self.name = name
    }

    /// What Postgres says of a text that names nothing: no identifier, an invalid name, too many dots.
    private static let noName: Set<String> = ["22023", SQLState.invalidName, "42601"]

    private static func refusal(of row: QueryResult, named name: String) -> String? {
        if row.flag(0, 7) { return "\(name) is a system table, which cannot be watched; name a table of your own." }
        let kind: String
        switch row.text(0, 4) {
        case "r", "p":
            if row.flag(0, 5), let root = row.text(0, 8) {
                return "\(name) is a partition of \(root); name \(root) instead."
            }
            return row.text(0, 6) == "t" ? "\(name) is a temporary table, which cannot be watched." : nil
        case "v": kind = "a view"
        case "m": kind = "a materialized view"
        case "f": kind = "a foreign table"
        case "S": kind = "a sequence"
        case "i", "I": kind = "an index"
        default: kind = "not a table"
        }
        return "\(name) is \(kind), which cannot be watched; name the table the rows are written to."
    }
}
