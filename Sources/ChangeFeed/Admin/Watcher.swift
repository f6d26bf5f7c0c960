import Postgres

/// Puts roost's triggers on tables and takes them off. The triggers are the list of watched tables; there is no other.
package enum Watcher {
    package struct Outcome: Sendable, Equatable {
        /// Schema and name, quoted where they must be.
        package let table: String
        /// The table and those of its partitions that were changed; empty where nothing was to do.
        package let changed: [String]
        /// The scope it has now.
        package var scope: ScopeOutcome?
        /// The members tables that were watched for its scope.
        package var members: [Outcome] = []
    }

    /// Watches a table and its partitions, and the members tables of a scope that is declared.
    ///
    /// Needs the TRIGGER right on the tables, EXECUTE on roost's functions and, for a scope, the right to write
    /// roost.scope, as their owner has them.
    /// - Parameters:
    ///   - table: as `regclass` reads it: `table`, `schema.table`, `"Quoted"`.
    ///   - patience: with tables that are in use.
    /// - Throws: `AdminError`; a scope that would be of no use is refused before anything is changed.
    @discardableResult
    package static func watch(
        _ table: String, scope: ScopeChange = .keep, conninfo: String, patience: LockPatience = LockPatience(),
        progress: @escaping AdminProgress.Listener = { _ in }
    ) throws -> Outcome {
        try administer("watch \(table)") {
            let teller = AdminTeller("watching \(table)", conninfo: conninfo, listener: progress)
            let connection = try migrated(conninfo, teller)
            let triggers = TriggerChange(
                plan: SQL.watchTable, connection: connection, patience: patience, teller: teller)
            let named = try NamedTable(table, on: connection)
            let keeper = ScopeKeeper(connection: connection, table: named)
            var members: [NamedTable] = []
            if case .declare(let column, let names) = scope {
                for name in names {
                    let member = try NamedTable(name, on: connection)
                    if !members.contains(where: { $0.oid == member.oid }) { members.append(member) }
                }
                try keeper.declare(column: column, members: members, rehearses: true)
            }
            var outcome = try triggers.apply(to: named)
            outcome.members = try members.filter { $0.oid != named.oid }
                .map { try triggers.apply(to: $0) }
            switch scope {
            case .keep: break
            case .remove: try keeper.remove()
            case .declare(let column, _): try keeper.declare(column: column, members: members, rehearses: false)
            }
            outcome.scope = try keeper.current()
            return outcome
        }
    }

    /// Watches every table of a publication, such as `supabase_realtime`.
    ///
    /// - Throws: `AdminError`; the tables before the one that failed stay watched.
    @discardableResult
    package static func watch(
        publication: String, conninfo: String, patience: LockPatience = LockPatience(),
        progress: @escaping AdminProgress.Listener = { _ in }
    ) throws -> [Outcome] {
        try administer("watch publication \(publication)") {
            let teller = AdminTeller("watching \(publication)", conninfo: conninfo, listener: progress)
            let connection = try migrated(conninfo, teller)
            let rows = try connection.query(SQL.publicationTables, [publication])
            guard rows.count > 0 else {
                throw AdminError("There is no publication \(publication); `\\dRp` in psql lists them.")
            }
            let names = (0..<rows.count).compactMap { rows.text($0, 0) }
            guard !names.isEmpty else {
                throw AdminError(
                    "The publication \(publication) has no tables; add one with ALTER PUBLICATION … ADD TABLE.")
            }
            let triggers = TriggerChange(
                plan: SQL.watchTable, connection: connection, patience: patience, teller: teller)
            return try names.enumerated().map { index, name in
                teller.tell { ($0.task, $0.done, $0.total) = ("watching \(name)", index, names.count) }
                return try triggers.apply(to: NamedTable(name, on: connection))
            }
        }
    }

    /// Takes the triggers off, and the declaration of a scope away. Needs to own the table.
    ///
    /// - Throws: `AdminError`, also where another table's scope rests on this one.
    @discardableResult
    package static func unwatch(
        _ table: String, conninfo: String, patience: LockPatience = LockPatience(),
        progress: @escaping AdminProgress.Listener = { _ in }
    ) throws -> Outcome {
        try administer("unwatch \(table)") {
            let teller = AdminTeller("unwatching \(table)", conninfo: conninfo, listener: progress)
            let connection = try migrated(conninfo, teller)
            let named = try NamedTable(table, on: connection)
            let keeper = ScopeKeeper(connection: connection, table: named)
            if let other = try keeper.resting().first {
                throw AdminError(
                    "The scope of \(other) rests on \(named.name), which therefore stays watched; run `roost watch "
                        + "\(other) --no-scope` first.")
            }
            // First the declaration: the hub must not rest on a table whose changes it is not told any more.
            if try keeper.current() != nil { try keeper.remove() }
            return try TriggerChange(
                plan: SQL.unwatchTable, connection: connection, patience: patience, teller: teller
            ).apply(to: named)
        }
    }

    private static func migrated(_ conninfo: String, _ teller: AdminTeller) throws -> PostgresConnection {
        let connection = try AdminSession.open(conninfo, teller: teller)
        do {
            try Migrator.demandCurrentSchema(on: connection)
        } catch let error as PostgresError where error.sqlState == nil && error.kind == .server {
            throw AdminError(error.message)
        }
        return connection
    }
}
