import Hub
import Matching

extension RowPrefilter {
    /// Stored at more than this, a row is not looked into: it may be compressed or stored apart, and a thousand of such rows
    /// would take too long to unpack.
    private static let largestRow = 2000

    /// The condition on a row of roost.change.
    ///
    /// A deleted row is judged by what it was, any other by what it is. Of a reduced one values are missing, so it always
    /// counts.
    var sql: String {
        var conditions: [String] = []
        for (oid, rows) in tables.sorted(by: { $0.key < $1.key }) {
            switch rows {
            case .all: conditions.append("relid = \(oid)")
            case .holding(let texts):
                let found = texts.sorted().map {
                    "strpos(coalesce(record, old_record)::text, \(SQLText.literal($0))) > 0"
                }
                let size = "pg_column_size(coalesce(record, old_record)) > \(Self.largestRow)"
                conditions.append(
                    "relid = \(oid) and (reduced or " + ([size] + found).joined(separator: " or ") + ")")
            }
        }
        return conditions.isEmpty ? "false" : conditions.map { "(\($0))" }.joined(separator: " or ")
    }
}
