import Matching
import Wire

/// Tables, changes and helpers for the tests of row changes.
enum Fixture {
    static func column(
        _ name: Name, _ type: Name, _ comparison: Comparison, sql: Name? = nil, key: Bool = false,
        identity: Bool = false
    ) -> Column {
        Column(
            name: name, type: type, sqlType: sql ?? type, comparison: comparison, isPrimaryKey: key,
            isReplicaIdentity: identity || key,
            isString: ["text", "varchar", "bpchar", "name", "citext"].contains(type.text))
    }

    static func table(
        _ columns: [Column], name: Name = "things", oid: UInt32 = 1, schema: Name = "public"
    ) -> Table {
        Table(oid: oid, schema: schema, name: name, columns: columns)
    }

    /// One column of every comparison.
    static let things = table([
        column("id", "int8", .decimal, key: true), column("small", "int2", .decimal), column("count", "int4", .decimal),
        column("owner", "oid", .decimal), column("price", "numeric", .decimal, sql: "numeric(10,2)"),
        column("ratio", "float8", .float), column("real", "float4", .float), column("body", "text", .text),
        column("code", "text", .textByBytes), column("key", "uuid", .uuid), column("done", "bool", .boolean),
        column("born", "date", .date), column("at", "timestamp", .timestamp),
        column("seen", "timestamptz", .timestamptz),
        column("state", "state", .canonical), column("note", "bpchar", .postgres, sql: "character(5)"),
        column("label", "name", .text), column("age", "years", .decimal), column("tags", "_int4", .postgres),
    ])

    static func change(
        _ record: String?, old: String? = nil, operation: RowChange.Operation = .insert, table: Table = things,
        isReduced: Bool = false
    ) -> RowChange {
        RowChange(
            id: 1, table: table, operation: operation, commitTimestamp: "2026-01-01T00:00:00.123Z",
            record: record.map { Array($0.utf8) }, oldRecord: old.map { Array($0.utf8) }, isReduced: isReduced)
    }

    static func json(_ text: String) throws -> JSON {
        try JSON(parsing: Array(text.utf8))
    }

    static func filter(_ text: String, _ table: Table = things, answers: [String] = []) throws -> BoundFilter {
        let draft = try ChangeFilter(parsing: text).bind(to: table)
        return try draft.makeFilter(answers: try answers.map(json))
    }

    static func verdict(
        _ filter: String, _ record: String, answers: [String] = [], table: Table = things
    ) throws -> Verdict {
        var row = RowRecord(change(record, table: table))
        return try Self.filter(filter, table, answers: answers).evaluate(&row)
    }

    /// The message of the error that `body` throws; nil if it throws none.
    static func message(_ body: () throws -> Void) -> String? {
        do {
            try body()
            return nil
        } catch let error as SubscriptionError {
            return error.message
        } catch {
            return "\(error)"
        }
    }
}
