import ChangeFeed
import Postgres
import Wire

/// Derives a table's scope from its policies, and stores it.
///
/// The catalog has the columns and tables that policies name (Scopes in Catalog.sql); the tables that their functions
/// read show in an evaluation (`PolicyObservation`). If neither is conclusive, no scope is stored, and the hub
/// evaluates the policies for each row.
struct ScopeDerivation {
    enum Outcome {
        /// Nothing to derive: all rows are visible to everyone, or a scope was declared.
        case none
        /// The tables that the scope depends on.
        case found(members: [NamedTable])
        /// Reasons, clauses without full stops.
        case refused([String])
    }

    let connection: PostgresConnection
    let conninfo: String
    let table: NamedTable

    /// Determines the scope without changing anything permanently.
    ///
    /// - Throws: `PostgresError`, `AdminError`.
    func findScope() throws -> Outcome {
        guard try connection.query(WatchingSQL.isScopeDerivable, [table.oid]).flag(0, 0) else { return .none }
        let first = try rehearseScope(members: [])
        if let refusal = Self.refusalOutcome(of: first) { return refusal }
        switch try observePolicies(first) {
        case .unknown(let reason):
            return .refused(["it cannot be determined which tables the policies read, as \(reason)"])
        case .seen(let tables):
            // By oid, as they are stored: a name may belong to another table by then.
            let scope = try rehearseScope(members: tables.sorted())
            if let refusal = Self.refusalOutcome(of: scope) { return refusal }
            return try .found(members: (scope?.members ?? []).map { try NamedTable(oid: $0, on: connection) })
        }
    }

    /// - Parameter members: the tables that the scope depends on.
    func storeScope(_ members: [NamedTable]) throws {
        let scope = try rehearseScope(members: members.compactMap { UInt32($0.oid) })
        let oids = "{" + members.map(\.oid).joined(separator: ",") + "}"
        _ = try connection.query(WatchingSQL.storeScope, [table.oid, scope?.columns.first?.text ?? "", oids, "true"])
    }

    /// The derived scope that the catalog would have with these members.
    private func rehearseScope(members: [UInt32]) throws -> DeclaredScope? {
        try connection.runScript("begin")
        do {
            let oids = "{" + members.map(String.init).joined(separator: ",") + "}"
            _ = try connection.query(WatchingSQL.storeScope, [table.oid, "", oids, "true"])
            let scope = try DeclaredScope.readScopes(of: table.oid, on: connection).first
            try connection.runScript("rollback")
            return scope
        } catch {
            if !connection.isBroken { try connection.runScript("rollback") }
            throw error
        }
    }

    /// A table that is not watched yet is about to be.
    private static func refusalOutcome(of scope: DeclaredScope?) -> Outcome? {
        guard let scope else { return .refused(["the table is gone"]) }
        let reasons = scope.problems.filter { $0.kind != .watch }.map(\.text)
        return reasons.isEmpty ? nil : .refused(reasons)
    }

    /// Evaluates the policies as an unknown user, and then as users from the tables found.
    private func observePolicies(_ scope: DeclaredScope?) throws -> PolicyObservation.Outcome {
        let statements = try connection.query(WatchingSQL.scopeRecords, [table.oid])
        var records: [[UInt8]] = []
        for column in 0..<2 where records.isEmpty {
            guard let statement = statements.text(0, column) else { return .unknown("the table is gone") }
            let rows = try connection.query(statement)
            records = (0..<rows.count).compactMap { row in rows.bytes(row, 0).map { Array($0) } }
        }
        let observation = PolicyObservation(connection: connection, conninfo: conninfo)
        guard let oid = UInt32(table.oid) else { return .unknown("the table is gone") }
        let nobody: Name = "00000000-0000-4000-8000-000000000000"
        let first = try observation.tablesRead(of: oid, records: records, users: [nobody])
        guard case .seen(let tables) = first else { return first }
        let known = tables.union(scope?.members ?? []).subtracting([oid]).sorted()
        let users = try SampleUsers(table: table.oid, column: nil, members: known, connection: connection).drawUsers(
            from: []
        )
        let second = try observation.tablesRead(of: oid, records: records, users: users.map { Name($0) } + [nobody])
        guard case .seen(let more) = second else { return second }
        return .seen(tables.union(more))
    }
}
