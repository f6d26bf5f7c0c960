/// Something about a filter that only Postgres knows: how it writes a value, or whether it accepts a condition at all.
package struct ValidationQuery: Hashable, Sendable {
    /// A SQL expression of type `json`. It reads no rows and names the table, so it fails if the table is gone.
    package let expression: String
    /// The condition as the client wrote it, for messages.
    package let condition: String

    /// The value, in the form in which records show it.
    static func canonical(_ value: String, _ column: Column, of table: Table, in condition: FilterCondition)
        -> ValidationQuery
    {
        // coalesce gives the literal the column's type without its length, so nothing is cut or rounded. What is short may
        // be written at length: '1e131071' as a numeric has 131,072 digits, and a filter could have 2,000 of them.
        ValidationQuery(
            expression: "(select case when octet_length(v::text) <= \(ChangeLimits.canonicalBytes) then to_json(v) end "
                + "from (select coalesce(\(operand(column, of: table)), \(SQLText.literal(value)))) as x(v))",
            condition: condition.description)
    }

    /// Whether the condition is one for this column: its operator exists and its values can be read.
    static func acceptance(_ condition: FilterCondition, _ column: Column, of table: Table) -> ValidationQuery {
        ValidationQuery(
            expression: "to_json((\(SQLCondition.text(condition, on: operand(column, of: table)))) is null)",
            condition: condition.description)
    }

    /// Whether the pattern is one, under the column's collation. Asked of an empty text, because with a NULL nothing
    /// would look at it.
    static func pattern(_ condition: FilterCondition, _ column: Column, of table: Table) -> ValidationQuery {
        let text = "coalesce(\(operand(column, of: table)), '')"
        return ValidationQuery(
            expression: "to_json(\(SQLCondition.text(condition, on: text)))", condition: condition.description)
    }

    /// One statement for many queries: as many rows as queries, in their order, each with one `json` column. `queries`
    /// must not be empty.
    ///
    /// It fails as a whole if one of the values is faulty. Whoever runs it then asks the queries one by one (pipelined,
    /// each in a transaction of its own) and turns the failures into errors with `refusal`.
    package static func statement(for queries: [ValidationQuery]) -> String {
        "values " + queries.map { "(\($0.expression))" }.joined(separator: ", ")
    }

    /// The error for the client, from the message of Postgres.
    package func refusal(_ message: String) -> SubscriptionError {
        SubscriptionError("filter condition \(SubscriptionError.quote(condition)) was refused by Postgres: \(message)")
    }

    private static func operand(_ column: Column, of table: Table) -> String {
        "(null::\(SQLText.name(of: table))).\(SQLText.identifier(column.name))"
    }
}
