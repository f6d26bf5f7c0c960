import Postgres

/// This process's position in the outbox, and the part of it that survives a lost connection or the end of the process.
///
/// Pure; confined to the feed's thread.
struct FeedPosition {
    /// Everything that this snapshot sees was handed on; nil until the database was first reached.
    private(set) var cursor: Snapshot?
    /// From pg_control_system(): another cluster's transaction ids mean nothing to this cursor.
    private(set) var systemIdentifier: String?
    /// See `ServerPosition.timeline`.
    private(set) var timeline: Int?
    /// True if the server continues at this process's position or somewhat earlier, rather than being another database or a
    /// dump.
    private(set) var isSameHistory = true
    /// Changes handed on since the cursor, which the next window must skip.
    private(set) var skip: Set<DeliveredChanges.Key> = []
    /// True if the database has a cursor of this hub's, from any history.
    private(set) var hasStoredCursor = false
    /// True if a store is needed: the cursor moved past changes, or the position that clients still need moved.
    var isUnstored = false
    private var delivered = DeliveredChanges()
    private var places = StorablePlaces()

    /// Records whether a hub of this name had ever stored a cursor here when the process began.
    mutating func recordFound(storedCursor: Bool) { hasStoredCursor = storedCursor }

    // MARK: Windows

    /// Changes were handed on, from a window that may not be complete.
    mutating func handedOn(_ keys: [DeliveredChanges.Key]) {
        for key in keys { delivered.addKey(key) }
    }

    /// A window has to be read again, without the changes already handed on.
    mutating func windowBroke() { skip = delivered.toSkip() }

    /// A whole window was handed on.
    ///
    /// - Parameters:
    ///   - isEmpty: true if nothing was handed on or skipped, so that resuming before the window costs nothing.
    ///   - taken: number of changes that the observer has taken so far.
    mutating func windowEnded(at end: Snapshot, isEmpty: Bool, taken: Int) {
        cursor = end
        skip = []
        delivered.windowCompleted()
        guard !isEmpty else { return }
        isUnstored = true
        places.addPlace(StorablePlaces.Place(cursor: end, covered: delivered.covered), taken: taken)
    }

    // MARK: Storing

    /// The newest place that may be stored, and whether it is the newest of all; nil if there is none.
    ///
    /// - Parameter settled: number of the observer's changes that are settled.
    mutating func storablePlace(settled: Int) -> (place: StorablePlaces.Place, isNewest: Bool)? {
        guard let place = places.storablePlace(settled: settled) else { return nil }
        return (place, !places.isWaiting)
    }

    /// - Parameters: `insertedAt` and `flushedTo` as for `DeliveredChanges`.
    mutating func placeStored(_ place: StorablePlaces.Place, isNewest: Bool, insertedAt: Int64, flushedTo: Int64) {
        hasStoredCursor = true
        isUnstored = !isNewest
        delivered.cursorStored(covering: place.covered, insertedAt: insertedAt, flushedTo: flushedTo)
    }

    // MARK: Connecting

    /// Chooses where to continue: at the stored cursor, which certainly fits the server's history; else at the cursor in
    /// memory, if it is this server's; else at the present.
    ///
    /// - Parameters:
    ///   - isRestored: true if the database was found to be restored from a dump.
    ///   - epochs: epochs that this process has written.
    /// - Returns: a message for the operator.
    mutating func resumeFromServer(_ server: ServerPosition, isRestored: Bool, knowing epochs: [DatabaseEpoch])
        -> String?
    {
        let isFirst = systemIdentifier == nil
        isSameHistory =
            isFirst
            || !isRestored && (epochs.isEmpty ? systemIdentifier == server.systemIdentifier : !server.known.isEmpty)
        let news = operatorNews(of: server, isFirst: isFirst, isRestored: isRestored, knowing: epochs)
        if !isSameHistory { delivered = DeliveredChanges() }
        if let stored = server.stored {
            cursor = stored
            isUnstored = false
        } else if !isSameHistory || cursor.map({ $0.xmax > server.now.xmax }) ?? true {
            cursor = server.now
            delivered = DeliveredChanges()
        }
        systemIdentifier = server.systemIdentifier
        timeline = server.timeline
        skip = delivered.toSkip()
        places.resetPlaces(at: cursor.map { StorablePlaces.Place(cursor: $0, covered: delivered.coveredByStored) })
        return news
    }

    /// The message for the operator about a server that is not in the state it was left in.
    private func operatorNews(
        of server: ServerPosition, isFirst: Bool, isRestored: Bool, knowing epochs: [DatabaseEpoch]
    ) -> String? {
        if isRestored {
            return """
                The database was restored from a dump: changes go on with what was written since. What had not reached \
                clients when the dump was made is not delivered, and clients that come back with a cursor are told to \
                load their data again.
                """
        }
        if isFirst { return nil }
        guard isSameHistory else {
            return """
                This is another database than before, or a much earlier state of it: changes go on with what it has, and \
                what was written elsewhere is not delivered.
                """
        }
        let isPutBack = epochs.last.map { !server.known.contains($0) } ?? false
        if let timeline, timeline != server.timeline, systemIdentifier == server.systemIdentifier {
            return server.wasRecoveredToPoint
                ? """
                The database was recovered to a point in time (timeline \(server.timeline), before \(timeline)): \
                changes go on with what it has; what was written after that point is gone, and clients that come with a \
                cursor from behind it are told to load their data again.
                """
                : """
                A standby was promoted (timeline \(server.timeline), before \(timeline)): changes go on with what the \
                new primary has; what it had not received when the old one ended is lost there, too.
                """
        }
        if systemIdentifier != server.systemIdentifier {
            return "The server was created again with the same data, as by pg_upgrade: changes go on without a gap."
        }
        return isPutBack
            ? """
            The database was put back to an earlier state, as from a copy of its files: changes go on with what it has; \
            what was written after that state is gone, and clients that come with a cursor from behind it are told to \
            load their data again.
            """ : nil
    }
}

/// The database's knowledge of this hub when it connects.
struct ServerPosition {
    let doorbell: String
    /// Nil if none is stored, or if it was taken in another history than this server's.
    let stored: Snapshot?
    let systemIdentifier: String
    let now: Snapshot
    let hasCommitTimestamps: Bool
    /// Grows with each promotion of a standby. Transactions of an older timeline may be missing from a newer one, where
    /// other transactions may have their ids.
    let timeline: Int
    /// If Roost's tables came from a dump, the snapshot when they were restored.
    let restore: Snapshot?
    /// Epochs of this process that the database knows.
    let known: Set<DatabaseEpoch>
    /// True if the server was once given a recovery target, so that an archive was replayed rather than a standby promoted.
    let wasRecoveredToPoint: Bool

    /// - Parameter epochs: epochs that this process has written.
    init(of node: String, knowing epochs: [DatabaseEpoch], on connection: PostgresConnection) throws {
        let parameters = [node, "{" + epochs.map { String($0.value) }.joined(separator: ",") + "}"]
        var row = try connection.query(FeedSQL.position, parameters)
        // Only if necessary: a database without disk space takes no writes, but still has changes to read.
        if row.count == 0 {
            _ = try connection.query(FeedSQL.register, [node])
            row = try connection.query(FeedSQL.position, parameters)
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
        restore = row.flag(0, 7) ? Self.restorePoint(behind: writers, before: now) : nil
        known = Set((row.text(0, 9) ?? "").split(separator: ",").compactMap { UInt32($0) }.map(DatabaseEpoch.init))
        wasRecoveredToPoint = row.flag(0, 10)
    }

    /// The snapshot as of the end of the last of some transactions.
    ///
    /// - Parameter writers: the lower 32 bits of their ids.
    private static func restorePoint(behind writers: [UInt32], before now: Snapshot) -> Snapshot {
        let whole = writers.map { writer -> UInt64 in
            let near = now.xmax & ~0xFFFF_FFFF | UInt64(writer)
            return near < now.xmax ? near : near &- 0x1_0000_0000
        }
        return Snapshot(xmax: min((whole.max() ?? now.xmax) &+ 1, now.xmax), running: [])
    }
}

/// The places the feed has reached that may be stored: those up to which all observed changes are settled.
package struct StorablePlaces: Sendable {
    /// A place between two windows.
    package struct Place: Sendable {
        package let cursor: Snapshot
        /// Number of changes that had been handed on there, see `DeliveredChanges`.
        package let covered: Int

        package init(cursor: Snapshot, covered: Int) {
            self.cursor = cursor
            self.covered = covered
        }
    }

    private var waiting: [(taken: Int, place: Place)] = []
    private var settledPlace: Place?
    /// Above this count, the newest places are merged into one.
    private static let most = 1000

    package init() {}

    /// A window ended at this place, or reading begins here.
    package mutating func addPlace(_ place: Place, taken: Int) {
        if waiting.count >= Self.most { waiting.removeLast() }
        waiting.append((taken, place))
    }

    /// Reading begins at a different place.
    package mutating func resetPlaces(at place: Place?) {
        waiting.removeAll()
        settledPlace = place
    }

    package var isWaiting: Bool { !waiting.isEmpty }

    /// The newest place up to which everything is settled; nil if there is none.
    package mutating func storablePlace(settled: Int) -> Place? {
        if let last = waiting.lastIndex(where: { $0.taken <= settled }) {
            settledPlace = waiting[last].place
            waiting.removeSubrange(...last)
        }
        return settledPlace
    }
}
