/// Reads the database rows that a client starts with. Called from any thread; must not block.
package protocol RowSource: Sendable {
    /// Reads rows as the bearer of the claims, subject to the policies.
    ///
    /// - Parameter done: called once, from any thread.
    func readRows(_ query: RowsQuery, as claims: Claims, then done: @escaping @Sendable (RowsAnswer) -> Void)
}

/// A query for rows of a table, as texts of a URL.
package struct RowsQuery: Sendable {
    package let schema: String?
    package let table: String?
    package let filter: String?
    /// Column names, separated by commas.
    package let select: String?
    package let order: String?
    package let limit: String?
    /// JSON.
    package let after: String?

    package init(_ query: [String: String]) {
        schema = query["schema"]
        table = query["table"]
        filter = query["filter"]
        select = query["select"]
        order = query["order"]
        limit = query["limit"]
        after = query["after"]
    }
}

package enum RowsAnswer: Sendable {
    /// - Parameters:
    ///   - rows: each as JSON.
    ///   - next: the position of the last row as JSON, if more follow.
    ///   - cursor: just after the state the rows show; a client that starts there is told all later changes.
    case rows([[UInt8]], next: [UInt8]?, cursor: String)
    /// One sentence for people.
    case refused(String)
    /// The database does not answer.
    case unavailable
    /// Too many queries of this user are waiting already.
    case tooMany
}
