import ChangeFeed
import Postgres
import Schema

/// Starts and ends the capture of tables. Triggers and the publication `roost` are the only list of watched tables.
package enum Watcher {
    package struct Outcome: Sendable, Equatable {
        /// Schema and name, quoted if necessary.
        package let table: String
        /// The table and its partitions, as far as they were changed; empty if there was nothing to do.
        package var changed: [String]
        /// Further remarks, in sentences.
        package var notes: [String] = []
        /// The table's scope after the command.
        package var scope: ScopeOutcome?
        /// Members tables that were watched for the scope.
        package var members: [Outcome] = []
        /// The reasons why no scope could be derived, clauses without full stops.
        package var obstacles: [String] = []
        /// The reasons why clients get no changes although the table is watched, in sentences.
        package var failures: [String] = []

        /// Tries the table's policies; the table is watched regardless of the result.
        mutating func tryPolicies(of table: NamedTable, on connection: PostgresConnection) throws {
            for failure in try PolicySample(table: table, connection: connection).findFailures() {
                if failure.isOfAll { failures.append(failure.sentence) } else { notes.append(failure.sentence) }
            }
        }
    }

    /// Watches a table and its partitions, and the members tables of a declared scope.
    ///
    /// Needs the TRIGGER right on the tables, EXECUTE on Roost's functions and, for a scope, the right to write
    /// roost.scope, as their owner has them. Reading the WAL requires ownership of the tables, CREATE on the database
    /// and REPLICATION.
    /// - Parameters:
    ///   - table: in the syntax of `regclass`: `table`, `schema.table`, `"Quoted"`.
    ///   - capture: the method of capture; a table that is captured by the other one changes over.
    ///   - patience: for tables that are in use.
    /// - Throws: `AdminError`; a scope that would have no effect is refused before anything is changed.
    @discardableResult
    package static func watch(
        _ table: String, scope: ScopeChange = .keep, capture: CaptureMethod = .triggers, conninfo: String,
        patience: LockPatience = LockPatience(), progress: @escaping AdminProgress.Listener = { _ in }
    ) throws -> Outcome {
        try runCommand("watch \(table)") {
            let reporter = ProgressWaiter("watching \(table)", conninfo: conninfo, listener: progress)
            let connection = try AdminSession.openMigrated(conninfo, reporter: reporter)
            let turns = TableTurns(connection: connection, patience: patience, reporter: reporter)
            let capture = TableCapture(method: capture, turns: turns, conninfo: conninfo)
            let named = try NamedTable(table, on: connection)
            let declaration = ScopeDeclaration(connection: connection, table: named)
            var members: [NamedTable] = []
            if case .declare(let column, let names) = scope {
                for name in names {
                    let member = try NamedTable(name, on: connection)
                    if !members.contains(where: { $0.oid == member.oid }) { members.append(member) }
                }
                try declaration.declareScope(column: column, members: members, rehearses: true)
            }
            var outcome = try capture.startCapture(named)
            outcome.members = try members.filter { $0.oid != named.oid }
                .map { try capture.startCapture($0) }
            switch scope {
            case .keep: break
            case .derive:
                try deriveScope(
                    ScopeDerivation(connection: connection, conninfo: conninfo, table: named), capture, &outcome)
            case .remove: try declaration.removeScope()
            case .declare(let column, _):
                try declaration.declareScope(column: column, members: members, rehearses: false)
            }
            outcome.scope = try declaration.currentScope()
            try outcome.tryPolicies(of: named, on: connection)
            return outcome
        }
    }

    /// Tables that could be watched, for somebody who has named none.
    /// - Throws: `AdminError`.
    package static func candidates(conninfo: String) throws -> [String] {
        try runCommand("look at the tables") {
            let rows = try AdminSession.openConnection(conninfo).query(WatchingSQL.candidates)
            return (0..<rows.count).compactMap { rows.text($0, 0) }
        }
    }

    /// Stores the scope that a watched table's policies imply, and watches the tables it depends on. If there is none,
    /// says so in the outcome, and removes an earlier derived scope.
    private static func deriveScope(
        _ derivation: ScopeDerivation, _ capture: TableCapture, _ outcome: inout Outcome
    ) throws {
        let declaration = ScopeDeclaration(connection: derivation.connection, table: derivation.table)
        switch try derivation.findScope() {
        case .none:
            if try declaration.currentScope()?.isDerived == true { try declaration.removeScope() }
        case .refused(let reasons):
            try declaration.removeScope()
            outcome.obstacles = reasons
        case .found(let members):
            do {
                outcome.members = try members.map { try capture.startCapture($0) }
                try derivation.storeScope(members)
            } catch let error as PostgresError where error.sqlState == SQLState.insufficientPrivilege {
                try declaration.removeScope()
                outcome.obstacles = ["the tables it rests on cannot be watched (\(error.message))"]
            } catch let error as AdminError {
                try declaration.removeScope()
                outcome.obstacles = ["the tables it rests on cannot be watched (\(error))"]
            }
        }
    }

    /// Watches every table of a publication, such as `supabase_realtime`.
    ///
    /// - Throws: `AdminError`; the tables before the one that failed stay watched.
    @discardableResult
    package static func watch(
        publication: String, derivesScopes: Bool = false, capture: CaptureMethod = .triggers, conninfo: String,
        patience: LockPatience = LockPatience(),
        progress: @escaping AdminProgress.Listener = { _ in }
    ) throws -> [Outcome] {
        try runCommand("watch publication \(publication)") {
            let reporter = ProgressWaiter("watching \(publication)", conninfo: conninfo, listener: progress)
            let connection = try AdminSession.openMigrated(conninfo, reporter: reporter)
            let rows = try connection.query(WatchingSQL.publicationTables, [publication])
            guard rows.count > 0 else {
                throw AdminError("There is no publication \(publication); `\\dRp` in psql lists them.")
            }
            let names = (0..<rows.count).compactMap { rows.text($0, 0) }
            guard !names.isEmpty else {
                throw AdminError(
                    "The publication \(publication) has no tables; add one with ALTER PUBLICATION … ADD TABLE.")
            }
            let turns = TableTurns(connection: connection, patience: patience, reporter: reporter)
            let capture = TableCapture(method: capture, turns: turns, conninfo: conninfo)
            return try names.enumerated().map { index, name in
                reporter.reportProgress { ($0.task, $0.done, $0.total) = ("watching \(name)", index, names.count) }
                let named = try NamedTable(name, on: connection)
                var outcome = try capture.startCapture(named)
                if derivesScopes {
                    let derivation = ScopeDerivation(connection: connection, conninfo: conninfo, table: named)
                    try deriveScope(derivation, capture, &outcome)
                    outcome.scope = try ScopeDeclaration(connection: connection, table: named).currentScope()
                }
                try outcome.tryPolicies(of: named, on: connection)
                return outcome
            }
        }
    }

    /// Removes the triggers, the table's entry in the publication and a declared scope. Needs ownership of the table.
    ///
    /// - Throws: `AdminError`, also if another table's scope depends on this one.
    @discardableResult
    package static func unwatch(
        _ table: String, conninfo: String, patience: LockPatience = LockPatience(),
        progress: @escaping AdminProgress.Listener = { _ in }
    ) throws -> Outcome {
        try runCommand("unwatch \(table)") {
            let reporter = ProgressWaiter("unwatching \(table)", conninfo: conninfo, listener: progress)
            let connection = try AdminSession.openMigrated(conninfo, reporter: reporter)
            let named = try NamedTable(table, on: connection)
            let declaration = ScopeDeclaration(connection: connection, table: named)
            if let other = try declaration.dependentTables().first {
                throw AdminError(
                    "The scope of \(other) rests on \(named.name), which therefore stays watched; run `roost watch "
                        + "\(other) --no-scope` first.")
            }
            // The declaration goes first: the hub must not depend on a table whose changes it no longer receives.
            if try declaration.currentScope() != nil { try declaration.removeScope() }
            let turns = TableTurns(connection: connection, patience: patience, reporter: reporter)
            return try TableCapture(method: .triggers, turns: turns, conninfo: conninfo).endCapture(named)
        }
    }
}

/// A table named in a command, looked up.
struct NamedTable {
    let oid: String
    /// Schema and name, quoted if necessary.
    let name: String

    /// - Throws: `AdminError` if it cannot be watched.
    init(_ given: String, on connection: PostgresConnection) throws {
        let rows: QueryResult
        do {
            rows = try connection.query(WatchingSQL.describeTable, [given])
        } catch let error as PostgresError where Self.noName.contains(error.sqlState ?? "") {
            throw AdminError("\"\(given)\" is not a table's name; write table, schema.table or \"Quoted\".\"Name\".")
        }
        guard rows.count == 1, let oid = rows.text(0, 0), let name = rows.text(0, 3) else {
            throw AdminError("There is no table \(given); \(try Self.advice(given, on: connection))")
        }
        if let reason = Self.refusalReason(of: rows, named: name) { throw AdminError(reason) }
        self.oid = oid
        self.name = name
    }

    /// - Throws: `AdminError` if it cannot be watched.
    init(oid: UInt32, on connection: PostgresConnection) throws {
        let rows = try connection.query("select $1::oid::regclass::text", [String(oid)])
        try self.init(rows.text(0, 0) ?? "", on: connection)
    }

    /// SQLSTATEs for a text that names nothing: no identifier, an invalid name, too many dots.
    private static let noName: Set<String> = ["22023", SQLState.invalidName, "42601"]

    /// Suggests tables of a similar name for one that does not exist.
    private static func advice(_ given: String, on connection: PostgresConnection) throws -> String {
        let found = try connection.query(WatchingSQL.namesakes, [given])
        let names = (0..<found.count).compactMap { found.text($0, 0) }
        guard !names.isEmpty else { return "name it as schema.table, and quote names with capitals." }
        // Capitals are between double quotes, which a shell would take away.
        return "did you mean \(names.map { $0.contains("\"") ? "'\($0)'" : $0 }.joined(separator: " or "))?"
    }

    private static func refusalReason(of row: QueryResult, named name: String) -> String? {
        if row.flag(0, 7) { return "\(name) is a system table, which cannot be watched; name a table of your own." }
        guard let kind = RelationKind.describeKind(row.text(0, 4) ?? "") else {
            if row.flag(0, 5), let root = row.text(0, 8) {
                return "\(name) is a partition of \(root); name \(root) instead."
            }
            return row.text(0, 6) == "t" ? "\(name) is a temporary table, which cannot be watched." : nil
        }
        return "\(name) is \(kind), which cannot be watched; name the table the rows are written to."
    }
}

/// Statements of `roost watch` and `roost unwatch`: tables, their triggers and their scopes.
enum WatchingSQL: String, NamedStatement {
    case describeTable, namesakes, candidates, publicationTables, watchTable, unwatchTable, storeScope,
        isScopeDerivable, scopeColumn, scopesResting, scopeRows, scopeRecords, scopeUsers, policyReaders,
        noteInterruptions
    static let file = StatementFile("Watching.sql")
}
