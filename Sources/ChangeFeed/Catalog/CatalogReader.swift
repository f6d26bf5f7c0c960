import Hub
package import Matching
package import Postgres
import Wire

/// Reads the watched tables, and what roles may read of them, from Postgres' catalog.
package enum CatalogReader {
    /// - Parameters:
    ///   - roles: roles whose access is wanted.
    ///   - readsWAL: true if this hub reads the WAL.
    static func readCatalog(
        from connection: PostgresConnection, roles: Set<Name> = [], readsWAL: Bool = false
    ) throws -> Catalog {
        // First: a change made during the rest of the read then makes the next version differ from this one.
        let version = try version(from: connection)
        let declared = try scopes(from: connection)
        let sound = declared.filter { $0.hasRowSecurity && $0.problems.isEmpty }
        let tables = try tables(from: connection)
        let faults = try TableFault.readFaults(from: connection, readsWAL: readsWAL)
        let complaints = tables.flatMap { table in
            (faults[table.oid] ?? []).compactMap { $0.complaint(about: table)?.message }
        }
        let displaced = try displacedTables(from: connection)
        let lookup = CatalogPolicyLookup(connection)
        let scopes = try sound.map { declared in
            let scope = Scope(columns: declared.columns, members: Set(declared.members))
            return (declared.oid, try scope.withReads(of: declared.oid, by: lookup, on: connection))
        }
        return Catalog(
            tables: tables,
            scopes: Dictionary(uniqueKeysWithValues: scopes),
            warnings: declared.flatMap { scope in
                scope.problems.map { "The scope of \(scope.table) is not used: \($0.text); run `roost doctor`." }
            } + complaints + displaced.map(\.sentence), faults: faults,
            roles: try RoleAccess.readRoles(roles, from: connection), version: version)
    }

    /// The version, which changes with everything that the results of policies and privileges depend on.
    package static func version(from connection: PostgresConnection) throws -> String {
        try connection.query(CatalogSQL.catalogVersion).text(0, 0) ?? ""
    }

    /// The version as an expression.
    static let versionQuestion = "(" + SQLTemplate.withoutComments(CatalogSQL.catalogVersion.text) + ")"

    /// Makes a session keep the plan of the version query, which costs more than running it.
    ///
    /// - Returns: an expression for the version; if the hub may not create temporary functions, the query itself.
    /// - Throws: `PostgresError`.
    package static func compileVersion(on connection: PostgresConnection) throws -> String {
        guard try connection.query(CatalogSQL.mayCompile).text(0, 0) == "t" else { return versionQuestion }
        try connection.runScript(
            SQLTemplate(withoutComments: CatalogSQL.catalogVersionFunction.text).filled(["body": versionQuestion]))
        return "pg_temp.roost_catalog_version()"
    }

    /// Faults that keep changes of watched tables from being recorded exactly once, for people: a row for each, with the
    /// table, the fault's name, and whether the table itself has it or only its partitions.
    ///
    /// - Parameter readsWAL: true if the hub in question reads the WAL.
    /// - Throws: `PostgresError`.
    package static func tableFaults(from connection: PostgresConnection, readsWAL: Bool) throws -> QueryResult {
        try connection.query(CatalogSQL.tableFaults, [readsWAL ? "true" : "false"])
    }

    /// Tables that took the place of watched ones, as by renaming.
    package static func displacedTables(from connection: PostgresConnection) throws -> [DisplacedTable] {
        let rows = try connection.query(CatalogSQL.displacedTables)
        return (0..<rows.count).map { DisplacedTable(name: rows.text($0, 0) ?? "", watched: rows.text($0, 1)) }
    }

    private static func scopes(from connection: PostgresConnection) throws -> [DeclaredScope] {
        // The examination takes milliseconds, and most databases have no scope.
        guard try connection.query("select from roost.scope limit 1").count > 0 else { return [] }
        return try DeclaredScope.readScopes(on: connection)
    }

    package static func tables(from connection: PostgresConnection) throws -> [Table] {
        let rows = try connection.query(CatalogSQL.catalog)
        var tables: [Table] = []
        var row = 0
        while row < rows.count {
            let first = row
            var columns: [Column] = []
            while row < rows.count, rows.text(row, 0) == rows.text(first, 0) {
                if let column = readColumn(rows, row) { columns.append(column) }
                row += 1
            }
            guard let oid = rows.text(first, 0).flatMap({ UInt32($0) }), let schema = rows.name(first, 1),
                let name = rows.name(first, 2)
            else { continue }
            tables.append(
                Table(
                    oid: oid, schema: schema, name: name, columns: columns, hasRowSecurity: rows.flag(first, 9),
                    hasSurrogateKey: rows.flag(first, 12)))
        }
        return tables
    }

    /// - Returns: nil for a table without columns.
    private static func readColumn(_ rows: QueryResult, _ row: Int) -> Column? {
        guard let name = rows.name(row, 3), let type = rows.name(row, 4), let sqlType = rows.name(row, 5) else {
            return nil
        }
        return Column(
            name: name, type: type, sqlType: sqlType, comparison: Comparison(catalogName: rows.text(row, 6)),
            isPrimaryKey: rows.flag(row, 7), isReplicaIdentity: rows.flag(row, 8), isString: rows.flag(row, 10),
            isJSON: rows.flag(row, 11))
    }
}

extension Comparison {
    /// By the names used in Catalog.sql; unknown types are compared by Postgres.
    init(catalogName: String?) {
        switch catalogName {
        case "decimal": self = .decimal
        case "float": self = .float
        case "text": self = .text
        case "textByBytes": self = .textByBytes
        case "uuid": self = .uuid
        case "boolean": self = .boolean
        case "date": self = .date
        case "timestamp": self = .timestamp
        case "timestamptz": self = .timestamptz
        case "canonical": self = .canonical
        default: self = .postgres
        }
    }
}
