import Matching
import Postgres

/// Writes declarations of scopes.
struct ScopeKeeper {
    let connection: PostgresConnection
    let table: NamedTable

    /// - Throws: `AdminError` where the declaration would be of no use; nothing is stored then.
    /// - Parameter rehearses: whether to examine only, as the tables may not be watched yet.
    func declare(column given: String, members: [NamedTable], rehearses: Bool) throws {
        let column = try columnName(given)
        guard !members.isEmpty else {
            throw AdminError("A scope needs the tables it rests on; name them with --members TABLE[,TABLE…].")
        }
        try connection.run("begin")
        do {
            let oids = "{" + members.map(\.oid).joined(separator: ",") + "}"
            _ = try connection.query(SQL.storeScope, [table.oid, column, oids])
            let problems = try DeclaredScope.read(of: table.oid, on: connection).flatMap(\.problems)
                .filter { !rehearses || $0.kind != .watch }.map(\.text)
            guard problems.isEmpty else {
                throw AdminError(
                    "\(table.name) cannot have the scope \(column), as \(problems.joined(separator: "; ")); change the "
                        + "policies or the declaration, or watch it without --scope: rows are then asked about one by one."
                )
            }
            try connection.run(rehearses ? "rollback" : "commit")
        } catch {
            if !connection.isBroken { try connection.run("rollback") }
            throw error
        }
    }

    func remove() throws {
        _ = try connection.query("delete from roost.scope where relid = $1::oid", [table.oid])
    }

    func current() throws -> ScopeOutcome? {
        try DeclaredScope.read(of: table.oid, on: connection).first.map(ScopeOutcome.init)
    }

    /// The other tables whose scope rests on this one.
    func resting() throws -> [String] {
        let rows = try connection.query(SQL.scopesResting, [table.oid])
        return (0..<rows.count).compactMap { rows.text($0, 0) }
    }

    private func columnName(_ given: String) throws -> String {
        let rows: QueryResult
        do {
            rows = try connection.query(SQL.scopeColumn, [table.oid, given])
        } catch let error as PostgresError where error.sqlState == "22023" {
            throw AdminError("\"\(given)\" is not a column's name; write column or \"Quoted Column\".")
        }
        guard let name = rows.count == 1 ? rows.text(0, 0) : nil else {
            throw AdminError("\(table.name) has no column \(given); quote names with capitals.")
        }
        return name
    }
}
