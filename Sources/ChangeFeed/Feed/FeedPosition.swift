import Postgres

/// How far this process has read the outbox, and what of that survives a lost connection or the end of the process.
///
/// Pure; confined to the feed's thread.
struct FeedPosition {
    /// All that this snapshot sees was handed on; nil until the database was reached once.
    private(set) var cursor: Snapshot?
    /// pg_control_system()'s: another cluster's transaction ids mean nothing to this cursor.
    private(set) var systemIdentifier: String?
    /// See `ServerPosition.timeline`.
    private(set) var timeline: Int?
    /// The server goes on where this process knew it to be, or somewhat before; not another database, nor a dump.
    private(set) var isSameHistory = true
    /// Handed on since the cursor; to be left out of the next window.
    private(set) var skip: Set<DeliveredChanges.Key> = []
    /// The database has a cursor of this hub's, of whatever history.
    private(set) var hasStoredCursor = false
    /// Something is to be stored: the cursor moved past changes, or what clients still need moved.
    var isUnstored = false
    private var delivered = DeliveredChanges()
    private var places = StorablePlaces()

    /// What was found when the process began: whether a hub of this name ever stored a cursor here.
    mutating func found(storedCursor: Bool) { hasStoredCursor = storedCursor }

    // MARK: Windows

    /// Changes were handed on, of a window that may not be complete.
    mutating func handedOn(_ keys: [DeliveredChanges.Key]) {
        for key in keys { delivered.handed(key) }
    }

    /// A window has to be read again; what was handed on of it is skipped then.
    mutating func windowBroke() { skip = delivered.toSkip() }

    /// All of a window was handed on.
    ///
    /// - Parameters:
    ///   - isEmpty: nothing was handed on, nor passed over: to go on before it costs nothing.
    ///   - taken: how many changes the observer has taken by now.
    mutating func windowEnded(at end: Snapshot, isEmpty: Bool, taken: Int) {
        cursor = end
        skip = []
        delivered.windowCompleted()
        guard !isEmpty else { return }
        isUnstored = true
        places.reached(StorablePlaces.Place(cursor: end, covered: delivered.covered), taken: taken)
    }

    // MARK: Storing

    /// The newest place that may be stored, and whether it is the newest there is; nil where there is none.
    ///
    /// - Parameter settled: how many of the changes that the observer took are settled.
    mutating func storable(settled: Int) -> (place: StorablePlaces.Place, isNewest: Bool)? {
        guard let place = places.storable(settled: settled) else { return nil }
        return (place, !places.isWaiting)
    }

    /// - Parameters: `insertedAt` and `flushedTo` as `DeliveredChanges.stored` takes them.
    mutating func stored(_ place: StorablePlaces.Place, isNewest: Bool, insertedAt: Int64, flushedTo: Int64) {
        hasStoredCursor = true
        isUnstored = !isNewest
        delivered.stored(covering: place.covered, insertedAt: insertedAt, flushedTo: flushedTo)
    }

    // MARK: Connecting

    /// Chooses where to go on: at the stored cursor, which certainly fits the server's history; else at the one in
    /// memory, if it is this server's; else now.
    ///
    /// - Parameters:
    ///   - isRestored: whether the database was found to be restored from a dump.
    ///   - epochs: that this process has written.
    /// - Returns: what the operator is to be told.
    mutating func adopt(_ server: ServerPosition, isRestored: Bool, knowing epochs: [DatabaseEpoch]) -> String? {
        let isFirst = systemIdentifier == nil
        isSameHistory =
            isFirst
            || !isRestored && (epochs.isEmpty ? systemIdentifier == server.systemIdentifier : !server.known.isEmpty)
        let news = news(of: server, isFirst: isFirst, isRestored: isRestored, knowing: epochs)
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
        places.startAnew(at: cursor.map { StorablePlaces.Place(cursor: $0, covered: delivered.coveredByStored) })
        return news
    }

    /// What the operator is told of a server that is not as it was left.
    private func news(
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

/// What the database knows of this hub when it connects.
struct ServerPosition {
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
        var row = try connection.query(FeedSQL.position, parameters)
        // Only where it has to be: a database without room takes no writes, and yet has changes to read.
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

/// Which of the places that the feed reached may be stored: those behind which all is settled that was observed.
package struct StorablePlaces: Sendable {
    /// A place between two windows.
    package struct Place: Sendable {
        package let cursor: Snapshot
        /// How many changes had been handed on there, see `DeliveredChanges.stored`.
        package let covered: Int

        package init(cursor: Snapshot, covered: Int) {
            self.cursor = cursor
            self.covered = covered
        }
    }

    private var waiting: [(taken: Int, place: Place)] = []
    private var settledPlace: Place?
    /// Beyond that the newest places are one.
    private static let most = 1000

    package init() {}

    /// A window ended, or reading begins here.
    package mutating func reached(_ place: Place, taken: Int) {
        if waiting.count >= Self.most { waiting.removeLast() }
        waiting.append((taken, place))
    }

    /// Reading begins somewhere else.
    package mutating func startAnew(at place: Place?) {
        waiting.removeAll()
        settledPlace = place
    }

    package var isWaiting: Bool { !waiting.isEmpty }

    /// The newest place behind which all is settled; nil where there is none.
    package mutating func storable(settled: Int) -> Place? {
        if let last = waiting.lastIndex(where: { $0.taken <= settled }) {
            settledPlace = waiting[last].place
            waiting.removeSubrange(...last)
        }
        return settledPlace
    }
}
