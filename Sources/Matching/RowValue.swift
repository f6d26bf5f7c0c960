/// What a record says about a column.
enum RowValue: Sendable {
    /// The record has no such column: the table was altered in between, or a DELETE does not show it.
    case absent
    /// Left out because the row is over the limit: not NULL, but nobody knows what.
    case omitted
    case null
    case value(ComparedValue)
    /// There is a value that only Postgres can compare.
    case opaque
}
