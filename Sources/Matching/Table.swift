package import Wire

/// A watched table, as the catalog described it when a window was read.
///
/// Immutable: an altered table becomes another `Table`, so a change keeps the columns it was written with.
package final class Table: Sendable {
    package let oid: UInt32
    package let schema: Name
    package let name: Name
    /// The columns in the order of their attributes, without dropped ones.
    package let columns: [Column]
    /// True if row level security is enabled: the table's policies decide what a user may see.
    package let hasRowSecurity: Bool
    /// True if the primary key carries no meaning: a uuid or a number that Postgres generates, and not also another table's
    /// key.
    package let hasSurrogateKey: Bool

    package init(
        oid: UInt32, schema: Name, name: Name, columns: [Column], hasRowSecurity: Bool = false,
        hasSurrogateKey: Bool = false
    ) {
        self.oid = oid
        self.schema = schema
        self.name = name
        self.columns = columns
        self.hasRowSecurity = hasRowSecurity
        self.hasSurrogateKey = hasSurrogateKey
    }

    /// Stands for a table in entries that `roost.notify()` wrote into the outbox.
    package static let notifications = Table(oid: 0, schema: "roost", name: "notification", columns: [])

    package func isNamed(as other: Table) -> Bool { schema == other.schema && name == other.name }

    package func column(_ name: Name) -> Column? {
        columns.first { $0.name == name }
    }
}

/// One column of a watched table.
package struct Column: Sendable, Equatable {
    package let name: Name
    /// `pg_type.typname`, as clients see it (`int8`, `_int4`, `timestamptz`).
    package let type: Name
    /// The type as SQL spells it in a cast, quoted if necessary (`format_type(atttypid, atttypmod)`).
    package let sqlType: Name
    /// The way in which the hub compares this column's values itself, if it does.
    package let comparison: Comparison
    package let isPrimaryKey: Bool
    /// True if the table's replica identity shows the column's old value to clients.
    package let isReplicaIdentity: Bool
    /// True if Postgres counts the type among strings, as it does citext and domains over any string type.
    package let isString: Bool
    /// True for json, jsonb and domains over them, whose null JSON does not distinguish from SQL's.
    package let isJSON: Bool

    package init(
        name: Name, type: Name, sqlType: Name, comparison: Comparison, isPrimaryKey: Bool,
        isReplicaIdentity: Bool, isString: Bool = false, isJSON: Bool = false
    ) {
        self.name = name
        self.type = type
        self.sqlType = sqlType
        self.comparison = comparison
        self.isPrimaryKey = isPrimaryKey
        self.isReplicaIdentity = isReplicaIdentity
        self.isString = isString
        self.isJSON = isJSON
    }
}

/// The way in which two values of a type are compared.
///
/// The hub decides alone only if its result is certain to be Postgres'; for the rest it queries Postgres.
package enum Comparison: Sendable, Equatable {
    /// int2, int4, int8, oid, numeric: exact decimals of any length, with NaN above everything (Postgres' order).
    case decimal
    /// float4, float8: as `Double`, with NaN equal to itself and above everything (Postgres' order).
    case float
    /// text, varchar, name under a deterministic collation: equal if the bytes are; Postgres orders them by the collation.
    case text
    /// text under the C or POSIX collation: equality and order by bytes.
    case textByBytes
    case uuid
    case boolean
    case date
    case timestamp
    case timestamptz
    /// Types with one output per value (time, inet, enums, bytea, …): equality by output, order by Postgres.
    case canonical
    /// Everything else (bpchar, citext, interval, json, arrays, ranges, non-deterministic collations, …).
    case postgres
}

extension Column {
    /// True if the hub has the column's values as bytes of text.
    var isComparedAsText: Bool { comparison == .text || comparison == .textByBytes }

    /// True if like, match and their kin may exist for the type. When the hub cannot be sure, it checks with Postgres.
    var isTextLike: Bool { isComparedAsText || isString }

    /// True if the hub orders the column's values as Postgres does.
    var isOrderedInProcess: Bool {
        switch comparison {
        case .text, .canonical, .postgres: false
        default: true
        }
    }
}

/// The tables of a subscription: one, those of a schema, or all.
package struct TablePattern: Hashable, Sendable {
    /// The name of the schema; nil for every schema.
    package let schema: Name?
    /// The name of the table; nil for every table.
    package let name: Name?

    /// `*` stands for every schema or table.
    package init(schema: Name, name: Name) {
        self.schema = schema == "*" ? nil : schema
        self.name = name == "*" ? nil : name
    }

    package var isWildcard: Bool { schema == nil || name == nil }

    package func includes(_ table: Table) -> Bool {
        (schema ?? table.schema) == table.schema && (name ?? table.name) == table.name
    }
}
