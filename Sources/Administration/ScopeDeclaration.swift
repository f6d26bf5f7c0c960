import ChangeFeed
import Postgres

/// Stores declarations of scopes.
struct ScopeDeclaration {
    let connection: PostgresConnection
    let table: NamedTable

    /// - Parameter rehearses: only examines the declaration, as the tables may not be watched yet.
    /// - Throws: `AdminError` if the declaration would have no effect; nothing is stored then.
    func declareScope(column given: String, members: [NamedTable], rehearses: Bool) throws {
        let column = try columnName(given)
        guard !members.isEmpty else {
            throw AdminError("A scope needs the tables it rests on; name them with --members TABLE[,TABLE…].")
        }
        try connection.runScript("begin")
        do {
            let oids = "{" + members.map(\.oid).joined(separator: ",") + "}"
            _ = try connection.query(WatchingSQL.storeScope, [table.oid, column, oids, "false"])
            let problems = try DeclaredScope.readScopes(of: table.oid, on: connection).flatMap(\.problems)
                .filter { !rehearses || $0.kind != .watch }.map(\.text)
            guard problems.isEmpty else {
                throw AdminError(
                    "\(table.name) cannot have the scope \(column), as \(problems.joined(separator: "; ")); change the "
                        + "policies or the declaration, or watch it without --scope: rows are then asked about one by one."
                )
            }
            try connection.runScript(rehearses ? "rollback" : "commit")
        } catch {
            if !connection.isBroken { try connection.runScript("rollback") }
            throw error
        }
    }

    func removeScope() throws {
        _ = try connection.query("delete from roost.scope where relid = $1::oid", [table.oid])
    }

    func currentScope() throws -> ScopeOutcome? {
        try DeclaredScope.readScopes(of: table.oid, on: connection).first.map(ScopeOutcome.init)
    }

    /// The other tables whose scopes depend on this one.
    func dependentTables() throws -> [String] {
        let rows = try connection.query(WatchingSQL.scopesResting, [table.oid])
        return (0..<rows.count).compactMap { rows.text($0, 0) }
    }

    private func columnName(_ given: String) throws -> String {
        let rows: QueryResult
        do {
            rows = try connection.query(WatchingSQL.scopeColumn, [table.oid, given])
        } catch let error as PostgresError where error.sqlState == "22023" {
            throw AdminError("\"\(given)\" is not a column's name; write column or \"Quoted Column\".")
        }
        guard let name = rows.count == 1 ? rows.text(0, 0) : nil else {
            throw AdminError("\(table.name) has no column \(given); quote names with capitals.")
        }
        return name
    }
}

/// The change that `roost watch` makes to a table's scope.
package enum ScopeChange: Sendable, Equatable {
    case keep
    /// Derives the scope from the policies, unless one was declared.
    case derive
    case remove
    /// - Parameters:
    ///   - column: in SQL syntax.
    ///   - members: tables, in the syntax of `regclass`.
    case declare(column: String, members: [String])

    /// Splits lists at commas; a comma between double quotes belongs to a name.
    package static func splitNames(in lists: [String]) -> [String] {
        lists.flatMap { list in
            var isQuoted = false
            return list.split { character in
                if character == "\"" { isQuoted.toggle() }
                return character == "," && !isQuoted
            }.map { String($0.trimming(while: { $0 == " " })) }.filter { !$0.isEmpty }
        }
    }
}

extension Substring {
    fileprivate func trimming(while isBlank: (Character) -> Bool) -> Substring {
        var rest = drop(while: isBlank)
        while let last = rest.last, isBlank(last) { rest.removeLast() }
        return rest
    }
}

/// The scope of a table that was watched.
package struct ScopeOutcome: Sendable, Equatable {
    /// The columns, for display.
    package let column: String
    /// Schemas and names, separated by commas.
    package let members: String
    /// True if the scope was derived from the policies.
    package let isDerived: Bool
    /// Without row level security the scope has no effect.
    package let hasRowSecurity: Bool
    /// The reasons why the hub does not use it, clauses without full stops.
    package let problems: [String]

    init(_ scope: DeclaredScope) {
        column = scope.columnNames
        isDerived = scope.isDerived
        members = scope.memberNames
        hasRowSecurity = scope.hasRowSecurity
        problems = scope.problems.map(\.text)
    }
}
