import Logging

/// What the database knows of this hub when it connects.
struct FeedPosition {
    let doorbell: String
    /// Nil where none is stored, or where it was taken on another cluster.
    let stored: Snapshot?
    let systemIdentifier: String
    let now: Snapshot
    let hasCommitTimestamps: Bool
    /// Grows with each promotion of a standby. Transactions of an older timeline may be missing from a newer one, and
    /// their ids may be others' there.
    let timeline: Int

    init(of node: String, on connection: PostgresConnection) throws {
        var row = try connection.query(SQL.position, [node])
        // Only where it has to be: a database without room takes no writes, and yet has changes to read.
        if row.count == 0 {
            _ = try connection.query(SQL.register, [node])
            row = try connection.query(SQL.position, [node])
        }
        guard row.count == 1, let doorbell = row.text(0, 0), let system = row.text(0, 3),
            let now = row.text(0, 4).flatMap({ Snapshot($0) }), let timeline = row.integer(0, 6)
        else { throw PostgresError(.server, "roost.node has no row for this hub; run `roost migrate`.") }
        self.doorbell = doorbell
        stored = row.flag(0, 2) ? row.text(0, 1).flatMap { Snapshot($0) } : nil
        systemIdentifier = system
        self.now = now
        hasCommitTimestamps = row.text(0, 5) == "on"
        self.timeline = Int(timeline)
    }
}

extension FeedProgress {
    /// Chooses where to go on: at the stored cursor, which certainly fits the server's history; else at the one in
    /// memory, if it is this server's; else now.
    mutating func adopt(_ position: FeedPosition, logger: Logger) {
        let isSameServer = systemIdentifier == position.systemIdentifier
        if isSameServer, let timeline, timeline != position.timeline {
            logger.notice(
                """
                A standby was promoted (timeline \(position.timeline), before \(timeline)): changes go on with what the \
                new primary has; what it had not received when the old one ended is lost there, too.
                """)
        }
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
        timeline = position.timeline
        skip = handed.toSkip()
        settling.startAnew(at: cursor.map { Settling.Place(cursor: $0, covered: handed.coveredByStored) })
    }
}
