/// Kinds of relations that have names like tables and are none, in words, by `pg_class.relkind`.
package enum RelationKind {
    /// Nil for a table, partitioned or not.
    package static func words(_ kind: String) -> String? {
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
