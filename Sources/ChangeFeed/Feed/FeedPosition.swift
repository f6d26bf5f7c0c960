import Logging

/// What the database knows of this hub when it connects.
struct FeedPosition {
    let doorbell: String
    /// Nil where none is stored, or where it was taken on another cluster.
    let stored: Snapshot?
    let systemIdentifier: String
    let now: Snapshot
    let hasCommitTimestamps: Bool

    init(of node: String, on connection: PostgresConnection) throws {
        _ = try connection.query(SQL.register, [node])
        let row = try connection.query(SQL.position, [node])
        guard let doorbell = row.text(0, 0), let system = row.text(0, 3),
            let now = row.text(0, 4).flatMap({ Snapshot($0) })
        else { throw PostgresError(.server, "roost.node has no row for this hub; run `roost migrate`.") }
        self.doorbell = doorbell
        stored = row.flag(0, 2) ? row.text(0, 1).flatMap { Snapshot($0) } : nil
        systemIdentifier = system
        self.now = now
        hasCommitTimestamps = row.text(0, 5) == "on"
    }
}

extension FeedProgress {
    /// Chooses where to go on: at the stored cursor, which certainly fits the server's history; else at the one in
    /// memory, if it is this server's; else now.
    mutating func adopt(_ position: FeedPosition, logger: Logger) {
        let isSameServer = systemIdentifier == position.systemIdentifier
        if let stored = position.stored {
            cursor = stored
            isUnstored = false
        } else if !isSameServer || cursor.map({ $0.xmax > position.now.xmax }) ?? true {
            if cursor != nil {
                logger.warning("This is another database than before: changes between the two are not delivered.")
            }
            cursor = position.now
            handed = HandedChanges()
        }
        systemIdentifier = position.systemIdentifier
        skip = handed.toSkip()
    }
}
