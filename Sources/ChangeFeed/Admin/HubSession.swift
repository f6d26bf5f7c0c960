import Postgres

/// A session that has a share of a hub's name (HubSessions.sql).
package struct HubSession: Equatable {
    let backendID: Int32
    /// Where it is and since when: `at 10.0.0.7 since …`.
    package let place: String
    /// When it last did something, as text; nil where this role may not know.
    let change: String?

    init(_ rows: QueryResult, _ row: Int) {
        backendID = Int32(truncatingIfNeeded: rows.integer(row, 0) ?? 0)
        let since = rows.text(row, 2).map { " since \($0)" } ?? ""
        place = (rows.text(row, 1) ?? "elsewhere") + since
        change = rows.text(row, 3)
    }

    package init(backendID: Int32, place: String, change: String?) {
        self.backendID = backendID
        self.place = place
        self.change = change
    }
}
