package import Hub

/// The watched tables at one moment.
package struct Catalog: Sendable {
    package let tables: [Table]
    private let byOID: [UInt32: Int]
    private let byName: [String: [String: Int]]
    private let keys: [[[UInt8]]]

    package init(tables: [Table] = []) {
        self.tables = tables
        byOID = Dictionary(uniqueKeysWithValues: tables.indices.map { (tables[$0].oid, $0) })
        var byName: [String: [String: Int]] = [:]
        for index in tables.indices { byName[tables[index].schema, default: [:]][tables[index].name] = index }
        self.byName = byName
        keys = tables.map { $0.columns.map { RecordKeys.encoded($0.name) } }
    }

    package func table(_ oid: UInt32) -> Table? { byOID[oid].map { tables[$0] } }

    package func table(schema: String, name: String) -> Table? { byName[schema]?[name].map { tables[$0] } }

    /// The same catalog, with the old objects for what did not change, so that identity tells whether a table did.
    func keeping(_ old: Catalog) -> Catalog {
        Catalog(
            tables: tables.map { table in old.table(table.oid).flatMap { $0.isSame(as: table) ? $0 : nil } ?? table })
    }

    func isSame(as other: Catalog) -> Bool {
        tables.count == other.tables.count && zip(tables, other.tables).allSatisfy { $0 === $1 }
    }

    /// Whether a record was written with the columns this catalog knows, in whatever order.
    func describes(_ record: UnsafeBufferPointer<UInt8>, of oid: UInt32) -> Bool {
        guard let index = byOID[oid] else { return false }
        // A partition that was attached may have its columns in another order than its root.
        return RecordKeys.matches(record, keys[index]) || RecordKeys.all(of: record) == Set(keys[index])
    }
}

extension Table {
    func isSame(as other: Table) -> Bool {
        oid == other.oid && schema == other.schema && name == other.name && columns == other.columns
            && hasRowSecurity == other.hasRowSecurity
    }

    /// The columns a record was written with, where the table was altered since: each as this table describes it, or as
    /// the older one did.
    func restricted(to record: UnsafeBufferPointer<UInt8>, older: Table?) -> Table {
        let present = RecordKeys.all(of: record)
        let known = columns + (older?.columns ?? []).filter { column($0.name) == nil }
        return Table(
            oid: oid, schema: schema, name: name,
            columns: known.filter { present.contains(RecordKeys.encoded($0.name)) })
    }
}
