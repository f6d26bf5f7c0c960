package import Matching
package import Postgres
package import Wire

/// The watched tables at one moment, and what roles may read of them.
package struct Catalog: Sendable {
    package let tables: [Table]
    /// The sound scopes, by the table's oid.
    package let scopes: [UInt32: Scope]
    /// Sentences about unsound declarations and about faults.
    let warnings: [String]
    /// Faults that keep changes of a table from being recorded, by the table's oid.
    let faults: [UInt32: [TableFault]]
    /// The tables that scopes name as members.
    package let memberTables: Set<UInt32>
    /// The members tables for which the users affected by a row's change are known.
    let narrowedMembers: Set<UInt32>
    /// Differs whenever a table, a policy or a privilege differs; empty before the first read.
    package let version: String
    private let roles: [Name: RoleAccess]
    private let byOID: [UInt32: Int]
    private let byName: [Name: [Name: Int]]
    private let keys: [RecordShape]

    package init(
        tables: [Table] = [], scopes: [UInt32: Scope] = [:], warnings: [String] = [],
        roles: [Name: RoleAccess] = [:], version: String = ""
    ) {
        self.init(
            tables: tables, scopes: scopes, warnings: warnings, faults: [:], roles: roles, version: version)
    }

    init(
        tables: [Table], scopes: [UInt32: Scope], warnings: [String], faults: [UInt32: [TableFault]],
        roles: [Name: RoleAccess], version: String
    ) {
        self.tables = tables
        self.scopes = scopes
        self.warnings = warnings
        self.faults = faults
        self.roles = roles
        self.version = version
        narrowedMembers = scopes.values.reduce(into: []) { $0.formUnion($1.reads.keys) }
        memberTables = scopes.values.reduce(into: []) { $0.formUnion($1.members) }
        byOID = Dictionary(uniqueKeysWithValues: tables.indices.map { (tables[$0].oid, $0) })
        var byName: [Name: [Name: Int]] = [:]
        for index in tables.indices {
            byName[tables[index].schema, default: [:]][tables[index].name] = index
        }
        self.byName = byName
        keys = tables.map(RecordShape.init)
    }

    package func table(_ oid: UInt32) -> Table? { byOID[oid].map { tables[$0] } }

    package func table(schema: Name, name: Name) -> Table? { byName[schema]?[name].map { tables[$0] } }

    /// Nil for a role that has not been looked up yet.
    package func access(of role: Name) -> RoleAccess? { roles[role] }

    /// The roles covered by this catalog that exist.
    package var knownRoles: Set<Name> { Set(roles.lazy.filter(\.value.exists).map(\.key)) }

    /// The same catalog, with the old objects for unchanged tables, so that identity tells whether a table changed.
    func reusingTables(_ old: Catalog) -> Catalog {
        Catalog(
            tables: tables.map { table in old.table(table.oid).flatMap { $0.isSame(as: table) ? $0 : nil } ?? table },
            scopes: scopes, warnings: warnings, faults: faults, roles: roles, version: version)
    }

    func isSame(as other: Catalog) -> Bool {
        version == other.version && scopes == other.scopes && faults == other.faults && roles == other.roles
            && hasSameTables(as: other)
    }

    func hasSameTables(as other: Catalog) -> Bool {
        tables.count == other.tables.count && zip(tables, other.tables).allSatisfy { $0 === $1 }
    }

    /// True if a record was written with the columns that this catalog knows, in any order. A deleted row's record may have
    /// only the columns of the replica identity, because the WAL has no others.
    func describesRecord(
        _ record: UnsafeBufferPointer<UInt8>, of oid: UInt32, after operation: RowChange.Operation
    ) -> Bool {
        byOID[oid].map { keys[$0].fitsRecord(record, after: operation) } ?? false
    }
}

/// The keys of a table's records.
private struct RecordShape: Sendable {
    private let all: [[UInt8]]
    private let identity: [[UInt8]]

    init(_ table: Table) {
        all = table.columns.map { RecordKeys.encodeKey($0.name) }
        identity = zip(table.columns, all).filter(\.0.isReplicaIdentity).map(\.1)
    }

    func fitsRecord(_ record: UnsafeBufferPointer<UInt8>, after operation: RowChange.Operation) -> Bool {
        if RecordKeys.matchesKeys(record, all) { return true }
        let mayBeIdentity = operation == .delete && !identity.isEmpty
        if mayBeIdentity, RecordKeys.matchesKeys(record, identity) { return true }
        // An attached partition may have its columns in another order than its root.
        let found = RecordKeys.allKeys(of: record)
        return found == Set(all) || mayBeIdentity && found == Set(identity)
    }
}

/// A database role's access to the watched tables, before policies.
package struct RoleAccess: Sendable, Equatable {
    /// True if the database has such a role.
    package let exists: Bool
    /// True if the hub's own role may act as it, as policies have to be evaluated.
    package let isAssumable: Bool
    /// By the table's oid; tables that the role may not read are missing.
    let tables: [UInt32: TableAccess]

    init(exists: Bool, isAssumable: Bool, tables: [UInt32: TableAccess]) {
        self.exists = exists
        self.isAssumable = isAssumable
        self.tables = tables
    }

    package static func readRoles(_ names: Set<Name>, from connection: PostgresConnection) throws -> [Name: RoleAccess]
    {
        guard !names.isEmpty else { return [:] }
        var list = TextArray()
        for name in names.sorted() { list.append(name.utf8) }
        let rows = try connection.query(CatalogSQL.access, [list.literal])
        var assumable: [Name: Bool] = [:]
        var tables: [Name: [UInt32: TableAccess]] = [:]
        for row in 0..<rows.count {
            guard let role = rows.name(row, 0) else { continue }
            assumable[role] = rows.flag(row, 1)
            guard let oid = rows.text(row, 2).flatMap({ UInt32($0) }) else { continue }
            let columns = try rows.bytes(row, 4).map {
                Set(try JSON(parsing: Array($0)).elements.compactMap { $0.string.map { Name($0) } })
            }
            tables[role, default: [:]][oid] = TableAccess(columns: columns, isRestricted: rows.flag(row, 3))
        }
        return Dictionary(
            uniqueKeysWithValues: names.map { name in
                let access = RoleAccess(
                    exists: assumable[name] != nil, isAssumable: assumable[name] ?? false, tables: tables[name] ?? [:])
                return (name, access)
            })
    }

    /// Nil if the role may read nothing of the table.
    package func table(_ oid: UInt32) -> TableAccess? { tables[oid] }
}

/// A role's access to one table.
package struct TableAccess: Sendable, Equatable {
    /// The columns that it may SELECT; nil for all, including later ones.
    package let columns: Set<Name>?
    /// True if row level security applies to the role: its policies decide on each row.
    package let isRestricted: Bool
}

extension Table {
    func isSame(as other: Table) -> Bool {
        oid == other.oid && isNamed(as: other) && columns == other.columns && hasRowSecurity == other.hasRowSecurity
            && hasSurrogateKey == other.hasSurrogateKey
    }

    /// The table with the columns that a record was written with, if the table has been altered since: each as this table
    /// describes it, or else as the older one did.
    func restricted(to record: UnsafeBufferPointer<UInt8>, older: Table?) -> Table {
        let present = RecordKeys.allKeys(of: record)
        let known = columns + (older?.columns ?? []).filter { column($0.name) == nil }
        return Table(
            oid: oid, schema: schema, name: name,
            columns: known.filter { present.contains(RecordKeys.encodeKey($0.name)) }, hasRowSecurity: hasRowSecurity,
            hasSurrogateKey: hasSurrogateKey)
    }
}
