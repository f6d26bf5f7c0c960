/// A question the hub cannot answer itself: whether a row meets conditions that depend on a collation, a regular
/// expression or a type it does not compare.
package struct PostgresCondition: Sendable {
    package let table: Table
    /// A SQL expression on the row `r`, a value of the table's own row type.
    package let expression: String
    /// What the client wrote, of what the expression decides.
    package let sources: [FilterCondition]
    /// The columns that the expression looks at, as a JSON object.
    package let cells: [UInt8]

    init(table: Table, expression: String, sources: [FilterCondition], cells: [UInt8]) {
        self.table = table
        self.expression = expression
        self.sources = sources
        self.cells = cells
    }
}
