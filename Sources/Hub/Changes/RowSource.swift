/// Where rows are read from the database that somebody wants to begin with. From any thread; must not wait.
package protocol RowSource: Sendable {
    /// Reads rows as whoever brought the claims, by the policies.
    ///
    /// - Parameter done: is told once, from any thread.
    func readRows(_ query: RowsQuery, as claims: Claims, then done: @escaping @Sendable (RowsAnswer) -> Void)
}

/// Which rows of which table, as texts of a URL.
package struct RowsQuery: Sendable {
    package let schema: String?
    package let table: String?
    package let filter: String?
    /// Columns, with commas between them.
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
    ///   - next: the place of the last one as JSON, where more follow.
    ///   - cursor: behind what they show; whoever begins there is told what changed since.
    case rows([[UInt8]], next: [UInt8]?, cursor: String)
    /// One sentence for people.
    case refused(String)
    /// The database does not answer.
    case unavailable
    /// Too much of this user's waits already.
    case tooMany
}
