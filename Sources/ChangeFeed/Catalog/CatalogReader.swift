import Hub

/// Reads the watched tables from Postgres' catalog.
enum CatalogReader {
    static func read(from connection: PostgresConnection) throws -> Catalog {
        let rows = try connection.query(SQL.catalog)
        var tables: [Table] = []
        var row = 0
        while row < rows.count {
            let first = row
            var columns: [Column] = []
            while row < rows.count, rows.text(row, 0) == rows.text(first, 0) {
                if let column = column(rows, row) { columns.append(column) }
                row += 1
            }
            guard let oid = rows.text(first, 0).flatMap({ UInt32($0) }), let schema = rows.text(first, 1),
                let name = rows.text(first, 2)
            else { continue }
            tables.append(
                Table(
                    oid: oid, schema: schema, name: name, columns: columns, hasRowSecurity: rows.flag(first, 9)))
        }
        return Catalog(tables: tables)
    }

    /// - Returns: nil for a table without columns.
    private static func column(_ rows: QueryResult, _ row: Int) -> Column? {
        guard let name = rows.text(row, 3), let type = rows.text(row, 4), let sqlType = rows.text(row, 5) else {
            return nil
        }
        return Column(
            name: name, type: type, sqlType: sqlType, comparison: Comparison(catalogName: rows.text(row, 6)),
            isPrimaryKey: rows.flag(row, 7), isReplicaIdentity: rows.flag(row, 8))
    }
}

extension Comparison {
    /// By the names Catalog.sql uses; what it does not know, Postgres compares.
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
