import Postgres
import Wire

/// What a role of the database may read of the watched tables, before policies.
package struct RoleAccess: Sendable, Equatable {
    /// Whether the database has such a role.
    package let exists: Bool
    /// Whether the hub's own role may act as it, as asking its policies takes.
    package let isAssumable: Bool
    /// By the table's oid; what the role may not read is missing.
    let tables: [UInt32: TableAccess]

    init(exists: Bool, isAssumable: Bool, tables: [UInt32: TableAccess]) {
        self.exists = exists
        self.isAssumable = isAssumable
        self.tables = tables
    }

    static func read(_ names: Set<String>, from connection: PostgresConnection) throws -> [String: RoleAccess] {
        guard !names.isEmpty else { return [:] }
        let list = "{" + names.sorted().map { arrayElement($0) }.joined(separator: ",") + "}"
        let rows = try connection.query(CatalogSQL.access, [list])
        var assumable: [String: Bool] = [:]
        var tables: [String: [UInt32: TableAccess]] = [:]
        for row in 0..<rows.count {
            guard let role = rows.text(row, 0) else { continue }
            assumable[role] = rows.flag(row, 1)
            guard let oid = rows.text(row, 2).flatMap({ UInt32($0) }) else { continue }
            let columns = try rows.bytes(row, 4).map { Set(try JSON(parsing: Array($0)).elements.compactMap(\.string)) }
            tables[role, default: [:]][oid] = TableAccess(columns: columns, isRestricted: rows.flag(row, 3))
        }
        return Dictionary(
            uniqueKeysWithValues: names.map { name in
                let access = RoleAccess(
                    exists: assumable[name] != nil, isAssumable: assumable[name] ?? false, tables: tables[name] ?? [:])
                return (name, access)
            })
    }

    /// As the input of an array type reads it (Postgres, "Array Input and Output Syntax").
    private static func arrayElement(_ text: String) -> String {
        "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
    }

    /// Nil where the role may read nothing of the table.
    package func table(_ oid: UInt32) -> TableAccess? { tables[oid] }
}

/// What a role may read of one table.
package struct TableAccess: Sendable, Equatable {
    /// The columns it may SELECT; nil for all, those that come later included.
    package let columns: Set<String>?
    /// Row level security applies to the role: its policies decide on each row.
    package let isRestricted: Bool
}
