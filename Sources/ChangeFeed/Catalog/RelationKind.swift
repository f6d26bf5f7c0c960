/// Words for the kinds of relations that share the names of tables but are not tables, by `pg_class.relkind`.
package enum RelationKind {
    /// Nil for a table, partitioned or not.
    package static func describeKind(_ kind: String) -> String? {
        switch kind {
        case "r", "p": nil
        case "v": "a view"
        case "m": "a materialized view"
        case "f": "a foreign table"
        case "S": "a sequence"
        case "i", "I": "an index"
        default: "not a table"
        }
    }
}
