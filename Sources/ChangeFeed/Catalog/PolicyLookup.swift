package import Postgres
import Wire

/// A routine as described by the catalog, with its parsed body if there is one.
struct RoutineFacts {
    /// The name as SQL calls it, without arguments: `auth.uid`.
    let name: String
    let isOfCatalog: Bool
    let isImmutable: Bool
    let isVolatile: Bool
    let isSecurityDefiner: Bool
    /// The query that it consists of; nil if that cannot be determined.
    let body: NodeTree?
}

/// A table that is read, as seen by a role with certain rights.
struct RelationFacts {
    /// The table itself, or the root of a partition.
    let root: UInt32
    let isTable: Bool
    /// True if the table's own policies decide what that role sees of it.
    let isRestricted: Bool
    /// By attribute number.
    let columns: [Int: Column]

    struct Column: Equatable {
        let name: Name
        /// Values of columns of the same kind are equal if their JSON is; nil for types for which that is not certain.
        let kind: String?
    }
}

/// Looks up functions and tables for an analysis. After `nil` or an error, nothing is considered known.
protocol PolicyLookup {
    func findRoutine(_ oid: UInt32) throws -> RoutineFacts?
    /// - Parameter owner: the `security definer` function that reads the table as its owner.
    func findRelation(_ oid: UInt32, asOwnerOf owner: UInt32?) throws -> RelationFacts?
    /// True if an operator is one of Postgres' own equalities, on types whose JSON is equal if the values are.
    func isEquality(_ oid: UInt32) throws -> Bool
}

/// Looks up functions and tables in a database, each of them once.
///
/// The text of a function's body has a definite meaning only when it runs. So Postgres is made to create a function of the
/// same query whose names are resolved at once (`begin atomic`), in a transaction that is rolled back; the parsed form is
/// read, and nothing is ever run. This works for functions of one query, in SQL or plpgsql, since Postgres 14.
package final class CatalogPolicyLookup: PolicyLookup {
    private let connection: PostgresConnection
    private var routines: [UInt32: RoutineFacts] = [:]
    private var relations: [[UInt32]: RelationFacts] = [:]
    private var equalities: Set<UInt32>?

    package init(_ connection: PostgresConnection) { self.connection = connection }

    func findRoutine(_ oid: UInt32) throws -> RoutineFacts? {
        if let known = routines[oid] { return known }
        let row = try connection.query(MemberSQL.routineFacts, [String(oid)])
        guard row.count == 1, let name = row.text(0, 0) else { return nil }
        let isOfCatalog = row.flag(0, 1)
        let facts = RoutineFacts(
            name: name, isOfCatalog: isOfCatalog, isImmutable: row.text(0, 2) == "i", isVolatile: row.text(0, 2) == "v",
            isSecurityDefiner: row.flag(0, 3), body: isOfCatalog ? nil : try routineBody(row))
        routines[oid] = facts
        return facts
    }

    private func routineBody(_ row: QueryResult) throws -> NodeTree? {
        if let parsed = row.text(0, 4) { return NodeTree(parsed) }
        guard connection.serverVersion >= 140_000, let arguments = row.text(0, 7), let result = row.text(0, 8),
            let query = Self.singleQuery(row.text(0, 6) ?? "", language: row.text(0, 5) ?? "")
        else { return nil }
        try connection.runScript("begin")
        do {
            // The setting of a user's session, if the function sets none.
            try connection.runScript("set local search_path to default")
            if let path = row.text(0, 9) {
                _ = try connection.query("select set_config('search_path', $1, true)", [path])
            }
            // A single statement, whatever the text contains.
            _ = try connection.query(
                "create function pg_temp.roost_twin(\(arguments)) returns \(result) language sql begin atomic \(query)\n; end"
            )
            let parsed = try connection.query(MemberSQL.twinBody).text(0, 0)
            try connection.runScript("rollback")
            return parsed.flatMap { NodeTree($0) }
        } catch let error as PostgresError where error.kind == .server {
            // A body in another language, or a name that the hub may not look up.
            try connection.runScript("rollback")
            return nil
        }
    }

    /// The query that a function consists of; nil if it is more than that.
    package static func singleQuery(_ source: String, language: String) -> String? {
        var text = source[...]
        func trimText() {
            text = text.drop { $0.isWhitespace }
            while let last = text.last, last.isWhitespace || last == ";" { text.removeLast() }
        }
        func dropWord(_ word: String) -> Bool {
            guard text.count > word.count, text.prefix(word.count).lowercased() == word,
                let next = text.dropFirst(word.count).first, next.isWhitespace || next == "("
            else { return false }
            text = text.dropFirst(word.count)
            trimText()
            return true
        }
        trimText()
        if language == "plpgsql" {
            guard dropWord("begin"), text.count > 3, text.suffix(3).lowercased() == "end" else { return nil }
            text.removeLast(3)
            guard let before = text.last, before.isWhitespace || before == ";" else { return nil }
            trimText()
            guard dropWord("return") else { return nil }
            if !dropWord("query") { text = "select (\(text))" }
        } else if language != "sql" {
            return nil
        }
        return text.isEmpty || text.contains(";") ? nil : String(text)
    }

    func findRelation(_ oid: UInt32, asOwnerOf owner: UInt32?) throws -> RelationFacts? {
        let key = [oid, owner ?? 0]
        if let known = relations[key] { return known }
        let rows = try connection.query(MemberSQL.relationFacts, [String(oid), owner.map { String($0) }])
        guard rows.count > 0, let root = rows.text(0, 0).flatMap({ UInt32($0) }) else { return nil }
        var columns: [Int: RelationFacts.Column] = [:]
        for row in 0..<rows.count {
            guard let number = rows.integer(row, 3), let name = rows.name(row, 4) else { continue }
            columns[Int(number)] = RelationFacts.Column(name: name, kind: rows.text(row, 5))
        }
        let facts = RelationFacts(
            root: root, isTable: rows.flag(0, 1), isRestricted: rows.flag(0, 2), columns: columns)
        relations[key] = facts
        return facts
    }

    func isEquality(_ oid: UInt32) throws -> Bool {
        if let equalities { return equalities.contains(oid) }
        let rows = try connection.query(MemberSQL.equalityOperators)
        let found = Set((0..<rows.count).compactMap { rows.text($0, 0).flatMap { UInt32($0) } })
        equalities = found
        return found.contains(oid)
    }
}

extension Scope {
    /// Adds the policies' reads of the members tables, as far as they can be understood.
    ///
    /// - Parameter table: the oid.
    /// - Throws: `PostgresError` if the database does not answer.
    package func withReads(
        of table: UInt32, by lookup: CatalogPolicyLookup, on connection: PostgresConnection
    ) throws -> Scope {
        var scope = self
        let facts = try lookup.findRelation(table, asOwnerOf: nil)
        let own = columns.count == 1 ? facts?.columns.first { $0.value.name == columns[0] } : nil
        var analysis = MemberReadsAnalysis(
            column: own.flatMap { own in own.value.kind.map { (own.key, $0) } }, lookup: lookup)
        let policies = try connection.query(MemberSQL.policyTrees, [String(table)])
        do {
            for row in 0..<policies.count {
                guard let tree = policies.text(row, 0).flatMap({ NodeTree($0) }) else { return self }
                try analysis.add(policy: tree)
            }
        } catch is MemberReadsAnalysis.NotUnderstood {
            return self
        }
        scope.reads = analysis.reads
        scope.userKey = analysis.userKey
        return scope
    }
}
