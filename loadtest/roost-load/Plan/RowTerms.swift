/// How rows are written.
struct RowTerms: Codable, Sendable {
    /// As libpq understands it.
    var conninfo: String
    var schema: String
    var table: String
    var filterColumn: String
    /// $1 the conversation, $2 the stamp.
    var insert: String
    /// Sessions that write, of all workers together.
    var writers: Int
    /// What each subscriber adds to its joins, in the order of the sockets' numbers; empty for nothing.
    var bearers: [String] = []
}
