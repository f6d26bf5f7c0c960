package import Wire

/// A watched table, as the catalog described it when a window was read.
///
/// Immutable: a table that is altered becomes another `Table`, so a change keeps the columns it was written with.
package final class Table: Sendable {
    package let oid: UInt32
    package let schema: Name
    package let name: Name
    /// The columns in the order of their attributes; dropped ones are left out.
    package let columns: [Column]
    /// Row level security is enabled: what a user may see is for its policies to say.
    package let hasRowSecurity: Bool
    /// Its primary key means nothing: a uuid or a number that Postgres draws, and no other table's.
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

    /// In place of a table, of what `roost.notify()` wrote into the outbox.
    package static let notifications = Table(oid: 0, schema: "roost", name: "notification", columns: [])

    package func isNamed(as other: Table) -> Bool { schema == other.schema && name == other.name }

    package func column(_ name: Name) -> Column? {
        columns.first { $0.name == name }
    }
}

/// One column of a watched table.
package struct Column: Sendable, Equatable {
    package let name: Name
    /// `pg_type.typname`, as clients are shown it (`int8`, `_int4`, `timestamptz`).
    package let type: Name
    /// The type as SQL spells it in a cast, quoted where it must be (`format_type(atttypid, atttypmod)`).
    package let sqlType: Name
    /// Whether the hub compares values of this column itself, and how.
    package let comparison: Comparison
    package let isPrimaryKey: Bool
    /// Whether the table's replica identity shows the column's old value to clients.
    package let isReplicaIdentity: Bool
    /// Whether Postgres counts the type among strings, as it does citext, and domains over any of them.
    package let isString: Bool
    /// Whether it is json or jsonb, or a domain over one, whose null JSON does not tell from SQL's.
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

/// How two values of a type are compared.
///
/// The hub decides alone only where its answer is certain to be the one Postgres would give; for the rest it asks.
package enum Comparison: Sendable, Equatable {
    /// int2, int4, int8, oid, numeric: exact decimals of any length, with NaN above everything (Postgres' order).
    case decimal
    /// float4, float8: as `Double`, NaN equal to itself and above everything (Postgres' order).
    case float
    /// text, varchar, name under a deterministic collation: equal when the bytes are; order is the collation's, so asked.
    case text
    /// text under the C or POSIX collation: equality and order by bytes.
    case textByBytes
    case uuid
    case boolean
    case date
    case timestamp
    case timestamptz
    /// Types with one output per value (time, inet, enums, bytea, …): equality by output, order asked.
    case canonical
    /// Everything else (bpchar, citext, interval, json, arrays, ranges, non-deterministic collations, …).
    case postgres
}

extension Column {
    /// Whether the hub has the column's values as bytes of text.
    var isComparedAsText: Bool { comparison == .text || comparison == .textByBytes }

    /// Whether like, match and their kin may exist for the type. Postgres is asked where the hub cannot be sure.
    var isTextLike: Bool { isComparedAsText || isString }

    /// Whether the hub orders the column's values as Postgres does.
    var isOrderedInProcess: Bool {
        switch comparison {
        case .text, .canonical, .postgres: false
        default: true
        }
    }
}

/// Which tables a subscription is about: one, those of a schema, or all.
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
