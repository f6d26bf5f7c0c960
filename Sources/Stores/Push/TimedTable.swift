package import Matching
import Postgres
package import Wire

/// The table of a column of `alerts.timed`, and the statements about it.
///
/// A date is due when it begins, and a timestamp without time zone at its time, both in UTC, whatever the time zone of the session, the
/// role or the database.
package struct TimedTable: Sendable {
    package let source: TimedSource
    package let table: Table
    private let parts: [String: String]

    /// Nil if the table has no such column, if its type does not hold a time, or if there is no primary key.
    init?(_ source: TimedSource, _ table: Table) {
        guard let column = table.column(source.column) else { return nil }
        let keys = table.columns.filter(\.isPrimaryKey)
        guard !keys.isEmpty, Self.isTime(column) else { return nil }
        let place = "t." + SQLText.identifier(column.name)
        let isZoned = column.comparison == .timestamptz
        let zone = isZoned ? "" : " at time zone 'UTC'"
        self.source = source
        self.table = table
        parts = [
            "rows": SQLText.name(of: table) + " t", "name": SQLText.identifier(table.name), "column": place,
            "zone": zone,
            "due": isZoned ? place : "(\(place)::timestamp\(zone))",
            "key": "jsonb_build_array(" + keys.map { "t." + SQLText.identifier($0.name) }.joined(separator: ", ")
                + ")::text",
            "match": keys.enumerated().map { place, key in
                "t.\(SQLText.identifier(key.name)) = (k.key::jsonb ->> \(place))::\(key.sqlType)"
            }.joined(separator: " and "),
            "size": table.columns.map { "coalesce(pg_column_size(t.\(SQLText.identifier($0.name))), 0)" }
                .joined(separator: " + "),
            "unless": source.unless.map { "(\($0))" } ?? "false",
        ]
    }

    static func isTime(_ column: Column) -> Bool {
        [.timestamptz, .timestamp, .date].contains(column.comparison)
    }

    func filled(_ statement: TimedSQL) -> String {
        SQLTemplate(withoutComments: statement.text).filled(parts)
    }

    /// Returns the statement about rows whose keys are in a parameter.
    func filled(_ statement: TimedSQL, keys parameter: Int) -> String {
        var parts = parts
        parts["rows"] =
            "unnest($\(parameter)::text[]) k (key) join \(parts["rows"] ?? "") on \(parts["match"] ?? "")"
        return SQLTemplate(withoutComments: statement.text).filled(parts)
    }

    /// Returns a row's key in the form of the statements; nil if the record lacks one of its columns.
    package func key(of record: [UInt8]) -> Name? {
        let row = JSON(trusted: record[...])
        let keys = table.columns.filter(\.isPrimaryKey).map { row[$0.name.text]?.description }
        guard !keys.contains(nil) else { return nil }
        return Name("[" + keys.compactMap { $0 }.joined(separator: ",") + "]")
    }
}
