/// A question about a filter that only Postgres can answer: how it writes a value, or whether it accepts a condition at
/// all.
package struct ValidationQuery: Hashable, Sendable {
    /// A SQL expression of type `json`. It reads no rows but names the table, so it fails if the table is gone.
    package let expression: String
    /// The condition as the client wrote it, for messages.
    package let condition: String

    /// The value in the form that records have.
    static func canonical(_ value: String, _ column: Column, of table: Table, in condition: FilterCondition)
        -> ValidationQuery
    {
        // coalesce gives the literal the column's type without its length, so that nothing is cut or rounded. A short value
        // may have a long form: '1e131071' as a numeric has 131,072 digits, and a filter could have 2,000 of them.
        ValidationQuery(
            expression: "(select case when octet_length(v::text) <= \(ChangeLimits.canonicalBytes) then to_json(v) end "
                + "from (select coalesce(\(operand(column, of: table)), \(SQLText.literal(value)))) as x(v))",
            condition: condition.description)
    }

    /// True if the condition suits the column: its operator exists and its values can be read.
    static func acceptance(_ condition: FilterCondition, _ column: Column, of table: Table) -> ValidationQuery {
        ValidationQuery(
            expression: "to_json((\(SQLCondition.text(condition, on: operand(column, of: table)))) is null)",
            condition: condition.description)
    }

    /// True if the pattern is valid under the column's collation. Applied to an empty text, because Postgres would not read
    /// the pattern for a NULL.
    static func pattern(_ condition: FilterCondition, _ column: Column, of table: Table) -> ValidationQuery {
        let text = "coalesce(\(operand(column, of: table)), '')"
        return ValidationQuery(
            expression: "to_json(\(SQLCondition.text(condition, on: text)))", condition: condition.description)
    }

    /// One statement for many queries: as many rows as queries, in their order, each with one `json` column. `queries` must
    /// not be empty.
    ///
    /// The statement fails as a whole if one of the values is faulty. The caller then sends the queries one by one
    /// (pipelined, each in its own transaction) and turns the failures into errors for the client.
    package static func statement(for queries: [ValidationQuery]) -> String {
        "values " + queries.map { "(\($0.expression))" }.joined(separator: ", ")
    }

    /// The error for the client, from Postgres' message.
    package func refusalError(_ message: String) -> SubscriptionError {
        SubscriptionError(
            "filter condition \(SubscriptionError.quoteText(condition)) was refused by Postgres: \(message)")
    }

    private static func operand(_ column: Column, of table: Table) -> String {
        "(null::\(SQLText.name(of: table))).\(SQLText.identifier(column.name))"
    }
}
