/// What the doctor has to know of the hub that it examines a database for.
package struct ExaminedHub: Sendable {
    /// `node.name`.
    package var node: String
    /// `feed.retention_hours`.
    package var retention: Duration
    /// Pushes take sessions of their own.
    package var sendsPushes: Bool

    package init(node: String = "roost", retention: Duration = .seconds(86_400), sendsPushes: Bool = false) {
        self.node = node
        self.retention = retention
        self.sendsPushes = sendsPushes
    }

    /// The most sessions with Postgres that the hub has at a time: two of the feed, two for conditions, one each for
    /// policies of rows, presence and who may come back, two for readings of what clients missed, two for policies of
    /// channels; two for pushes.
    var sessions: Int { sendsPushes ? 13 : 11 }
}
