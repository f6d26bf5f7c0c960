import Logging
import Postgres

/// What the database knows of this hub when it connects.
struct FeedPosition {
    let doorbell: String
    /// Nil where none is stored, or where it was taken in another history than this server's.
    let stored: Snapshot?
    let systemIdentifier: String
    let now: Snapshot
    let hasCommitTimestamps: Bool
    /// Grows with each promotion of a standby. Transactions of an older timeline may be missing from a newer one, and
    /// their ids may be others' there.
    let timeline: Int
    /// Where roost's tables came out of a dump, how much was there when they were restored.
    let restore: Snapshot?
    /// Epochs of this process that the database knows.
    let known: Set<DatabaseEpoch>
    /// The server was once told up to where to recover, so an archive was replayed and no standby promoted.
    let wasRecoveredToPoint: Bool

    /// - Parameter epochs: that this process has written.
    init(of node: String, knowing epochs: [DatabaseEpoch], on connection: PostgresConnection) throws {
        let parameters = [node, "{" + epochs.map { String($0.value) }.joined(separator: ",") + "}"]
        var row = try connection.query(SQL.position, parameters)
        // Only where it has to be: a database without room takes no writes, and yet has changes to read.
        if row.count == 0 {
            _ = try connection.query(SQL.register, [node])
            row = try connection.query(SQL.position, parameters)
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
        let writers = (row.text(0, 8) ?? "").split(separator: ",").compactMap { UInt32($0) }
        restore = row.flag(0, 7) ? Self.place(behind: writers, before: now) : nil
        known = Set((row.text(0, 9) ?? "").split(separator: ",").compactMap { UInt32($0) }.map(DatabaseEpoch.init))
        wasRecoveredToPoint = row.flag(0, 10)
    }

    /// What was there when the last of some transactions ended.
    ///
    /// - Parameter writers: the lower halves of their ids.
    private static func place(behind writers: [UInt32], before now: Snapshot) -> Snapshot {
        let whole = writers.map { writer -> UInt64 in
            let near = now.xmax & ~0xFFFF_FFFF | UInt64(writer)
            return near < now.xmax ? near : near &- 0x1_0000_0000
        }
        return Snapshot(xmax: min((whole.max() ?? now.xmax) &+ 1, now.xmax), running: [])
    }
}

extension FeedProgress {
    /// Chooses where to go on: at the stored cursor, which certainly fits the server's history; else at the one in
    /// memory, if it is this server's; else now.
    ///
    /// - Parameter isRestored: whether the database was found to be restored from a dump.
    mutating func adopt(_ position: FeedPosition, isRestored: Bool, logger: Logger) {
        let isFirst = systemIdentifier == nil
        isSameHistory =
            isFirst
            || !isRestored
                && (epochs.known.isEmpty ? systemIdentifier == position.systemIdentifier : !position.known.isEmpty)
        if let news = news(of: position, isFirst: isFirst, isRestored: isRestored) { logger.warning("\(news)") }
        if !isSameHistory {
            handed = DeliveredChanges()
            outboxLook = nil
        }
        if let stored = position.stored {
            cursor = stored
            isUnstored = false
        } else if !isSameHistory || cursor.map({ $0.xmax > position.now.xmax }) ?? true {
            cursor = position.now
            handed = DeliveredChanges()
        }
        systemIdentifier = position.systemIdentifier
        timeline = position.timeline
        skip = handed.toSkip()
        settling.startAnew(at: cursor.map { StorablePlaces.Place(cursor: $0, covered: handed.coveredByStored) })
    }

    /// What the operator is told of a server that is not as it was left.
    private func news(of position: FeedPosition, isFirst: Bool, isRestored: Bool) -> String? {
        if isRestored {
            return """
                The database was restored from a dump: changes go on with what was written since. What had not reached \
                clients when the dump was made does not, and clients that come with a cursor are told to load their data \
                again.
                """
        }
        if isFirst { return nil }
        guard isSameHistory else {
            return """
                This is another database than before, or a much earlier state of it: changes go on with what it has, and \
                what was written elsewhere is not delivered.
                """
        }
        let isPutBack = epochs.known.last.map { !position.known.contains($0) } ?? false
        if let timeline, timeline != position.timeline, systemIdentifier == position.systemIdentifier {
            return position.wasRecoveredToPoint
                ? """
                The database was recovered to a point in time (timeline \(position.timeline), before \(timeline)): \
                changes go on with what it has; what was written after that point is gone, and clients that come with a \
                cursor from behind it are told to load their data again.
                """
                : """
                A standby was promoted (timeline \(position.timeline), before \(timeline)): changes go on with what the \
                new primary has; what it had not received when the old one ended is lost there, too.
                """
        }
        if systemIdentifier != position.systemIdentifier {
            return "The server was made anew with the same data, as by pg_upgrade: changes go on without a gap."
        }
        return isPutBack
            ? """
            The database was put back to an earlier state, as from a copy of its files: changes go on with what it has; \
            what was written after that state is gone, and clients that come with a cursor from behind it are told to \
            load their data again.
            """ : nil
    }
}
