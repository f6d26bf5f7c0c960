package import Postgres
package import Wire

extension QueryResult {
    /// A name as Postgres has it; nil for null.
    package func name(_ row: Int, _ column: Int) -> Name? { text(row, column).map { Name($0) } }
}
