package import Hub
import Postgres
import Synchronization

/// The feed's knowledge of the past when recoveries begin.
struct FeedHistory {
    let epoch: DatabaseEpoch
    /// The database's knowledge of the epochs of members' cursors.
    let epochs: [DatabaseEpoch: KnownEpoch]
    /// Everything up to here was handed on; a member's gap ends here.
    let present: Snapshot
    let marks: Watermarks
    let restart: RestartPoint
    /// See `RecoveryPoints.restored`.
    let restored: Snapshot?
    /// Sees every transaction that may have lost a change; nil if none has.
    let pruned: Snapshot?

    enum Start {
        case from(FeedCursor)
        /// - Parameter rest: the position from which everything is still there and can be sent; nil if unknown.
        case refused(RecoveryRefusal, rest: FeedCursor?)
    }

    func findStart(from point: RecoveryPoint) -> Start {
        switch point {
        case .cursor(let text): return startFromCursor(text)
        case .mark(let mark):
            // Mark 0 is before the first.
            guard mark > 0 else { return findStart(from: .restart) }
            guard let snapshot = marks.snapshot(at: mark) else { return .refused(.tooOld, rest: nil) }
            return refuseIfPruned(FeedCursor(epoch: epoch, at: snapshot))
        case .restart:
            switch restart {
            case .foreign: return .refused(.otherDatabase, rest: nil)
            case .snapshot(let snapshot): return refuseIfPruned(FeedCursor(epoch: epoch, at: snapshot))
            }
        case .restored(let text):
            guard case .snapshot = restart, let place = restart.clientPlace(text, upTo: restored) else {
                return findStart(from: .restart)
            }
            return refuseIfPruned(FeedCursor(epoch: epoch, at: place.intersection(present)))
        case .snapshot(let text):
            guard let snapshot = Snapshot(text) else { return .refused(.malformed, rest: nil) }
            // The other hub may be ahead of this one; everything past this one's present comes live.
            return refuseIfPruned(FeedCursor(epoch: epoch, at: snapshot.intersection(present)))
        case .peer(let cursor, let otherwise):
            // If changes after the cursor are gone, so are changes after any earlier position.
            switch startFromCursor(cursor) {
            case .refused(let refusal, _) where refusal != .tooOld: return findStart(from: .snapshot(otherwise))
            case let start: return start
            }
        case .earliest(let points):
            var (earliest, refused, lost): (Snapshot?, RecoveryRefusal?, RecoveryRefusal?)
            for point in points {
                switch (findStart(from: point), point) {
                // A cursor stands for a single client, which may have made it up: the other clients are still sent what
                // they missed.
                case (.refused(let refusal, _), .cursor): refused = refusal
                case (.refused(let refusal, let rest), _):
                    lost = refusal
                    earliest = rest.map { earliest?.intersection($0.seen) ?? $0.seen } ?? earliest
                case (.from(let cursor), _): earliest = earliest?.intersection(cursor.seen) ?? cursor.seen
                }
            }
            let start = earliest.map { FeedCursor(epoch: epoch, at: $0) }
            if let lost { return .refused(lost, rest: start) }
            return start.map { refuseIfPruned($0) } ?? .refused(refused ?? .malformed, rest: nil)
        }
    }

    /// Approximate number of changes between a point and the present; nil if unknown.
    func distance(from point: RecoveryPoint) -> Int? {
        if case .mark(let mark) = point, mark > 0 { marks.changes(since: mark) } else { nil }
    }

    private func startFromCursor(_ text: String) -> Start {
        guard let cursor = FeedCursor(text) else { return .refused(.malformed, rest: nil) }
        var start = cursor
        if cursor.epoch != epoch {
            guard let known = epochs[cursor.epoch]?.resumePoint(from: cursor) else {
                return .refused(.otherDatabase, rest: nil)
            }
            // From now on, the client's cursors carry this hub's epoch.
            start = FeedCursor(epoch: epoch, seen: known.seen, window: known.window, id: known.id)
        }
        // The present was read after the client asked, so no hub can have handed on more than it sees.
        guard start.window.precedes(present) else { return .refused(.ahead, rest: nil) }
        return refuseIfPruned(start)
    }

    /// Changes left over from before the last loss are not sent: the client reloads its data when it is told of the loss,
    /// and an older version that arrived later would stay for good if its successor was lost.
    private func refuseIfPruned(_ cursor: FeedCursor) -> Start {
        guard let pruned, !pruned.precedes(cursor.seen) else { return .from(cursor) }
        return .refused(.tooOld, rest: FeedCursor(epoch: epoch, at: pruned.intersection(present)))
    }

    /// The snapshot that sees every transaction that may have lost a change; nil if none has.
    static func prunedSnapshot(on reader: PostgresConnection) throws -> Snapshot? {
        let row = try reader.query(RecoverySQL.recoveryGround)
        return Snapshot(prunedUpTo: row.text(0, 0), sparing: row.text(0, 1))
    }
}

extension RecoveryPoint {
    /// True for a position that the client itself brought; it reloads its data if refused.
    var isCursor: Bool { if case .cursor = self { true } else { false } }

    /// The epochs of all its cursors, which its judge has to know (`FeedHistory.epochs`).
    package var epochs: Set<DatabaseEpoch> {
        switch self {
        case .cursor(let text), .peer(let text, otherwise: _): FeedCursor(text).map { [$0.epoch] } ?? []
        case .earliest(let points): points.reduce(into: []) { $0.formUnion($1.epochs) }
        case .mark, .restart, .restored, .snapshot: []
        }
    }
}

/// The point from which clients of the hub's last process continue.
package enum RestartPoint: Sendable, Equatable {
    /// The stored position, or without one, where this process began: a member that joined before the first mark also
    /// starts there.
    case snapshot(Snapshot)
    /// The stored position does not fit this database.
    case foreign

    /// The position of one of these clients, between the stored position and where this process began.
    ///
    /// - Returns: nil if nothing is known about it.
    package func clientPlace(_ text: String, upTo limit: Snapshot?) -> Snapshot? {
        guard case .snapshot(let left) = self, let limit else { return nil }
        guard let place = Snapshot(text)?.intersection(limit), left.precedes(place) else { return left }
        return place
    }
}

/// Recovery points shared by threads: the session writer also looks up how far the feed was at which time.
package final class RecoveryPlaces: Sendable {
    private let points: Mutex<RecoveryPoints>

    package init(window: Duration) { points = Mutex(RecoveryPoints(window: window)) }

    package func withPoints<Answer: Sendable>(_ body: (inout RecoveryPoints) -> Answer) -> Answer {
        points.withLock { body(&$0) }
    }

    /// The snapshot that a client at this point certainly has, in Postgres' text; nil if unknown.
    package func snapshot(at point: RecoveryPoint) -> String? {
        // Before the first window, no cursor of this history exists, but marks do.
        points.withLock { $0.seenSnapshot(by: point, in: $0.epoch ?? DatabaseEpoch(value: 0))?.text }
    }
}

/// The positions from which clients can still be sent missed changes: those that they remember as marks, and where the
/// hub's last process left its clients. Outlives a connection; pure.
package struct RecoveryPoints {
    package private(set) var marks = Watermarks()
    /// Found when this process began; nil before.
    package private(set) var restart: RestartPoint?
    /// The limit up to which the last process's records of single clients are valid.
    package private(set) var restored: Snapshot?
    /// The history in which windows are read; nil before the first window.
    private(set) var epoch: DatabaseEpoch?
    /// The position last stored for the next process; nil if a new store is needed.
    package var stored: Snapshot?
    /// The time until which clients of the last process may come back.
    private var restartUntil: ContinuousClock.Instant?
    /// The oldest mark whose snapshot is needed, as of the last update.
    private var oldestMark = 0
    /// Time after the hub's start in which clients of its last process come back.
    private let window: Duration

    package init(window: Duration) {
        self.window = window
        marks.grace = window + .seconds(10)
    }

    /// The position that every client has reached or may ask for; nil if no mark covers it.
    package var needed: Snapshot? { marks.snapshot(at: oldestMark) }

    /// A point as a cursor that every hub of the database understands; nil if unknown.
    package func locate(_ point: RecoveryPoint, in epoch: DatabaseEpoch) -> FeedCursor? {
        // The cursor may be from another history; its reader judges that.
        if case .cursor(let text) = point { return FeedCursor(text) }
        return seenSnapshot(by: point, in: epoch).map { FeedCursor(epoch: epoch, at: $0) }
    }

    fileprivate func seenSnapshot(by point: RecoveryPoint, in epoch: DatabaseEpoch) -> Snapshot? {
        func seen(_ text: String) -> Snapshot? { FeedCursor(text).flatMap { $0.epoch == epoch ? $0.seen : nil } }
        switch point {
        case .mark(let mark) where mark > 0: return marks.snapshot(at: mark)
        case .mark, .restart: if case .snapshot(let snapshot) = restart { return snapshot } else { return nil }
        case .restored(let text): return restart?.clientPlace(text, upTo: restored)
        case .cursor(let text): return seen(text)
        case .snapshot(let text): return Snapshot(text)
        case .peer(let text, let otherwise): return seen(text) ?? Snapshot(otherwise)
        case .earliest(let points):
            var earliest: Snapshot?
            for point in points {
                guard let one = self.seenSnapshot(by: point, in: epoch) else { return nil }
                earliest = earliest?.intersection(one) ?? one
            }
            return earliest
        }
    }

    // MARK: Connecting

    /// This process has connected for the first time.
    ///
    /// - Parameters:
    ///   - left: where the last process left its clients; nil if there was none.
    ///   - position: the stored position, nil if it does not fit this database.
    ///   - cursor: where the feed continues.
    package mutating func processStarted(
        after left: Snapshot?, storedAt position: Snapshot?, at cursor: Snapshot, now: ContinuousClock.Instant
    ) {
        var start = cursor
        restartUntil = now + window
        restored = cursor
        switch (left, position) {
        case (nil, _):
            restart = .snapshot(cursor)
            restartUntil = nil
        case (_?, nil): restart = .foreign
        case (let left?, let position?):
            // Mark 0 stands for this position, so that it keeps being stored for as long as a client may need it.
            start = left.precedes(position) ? left : position
            restart = .snapshot(start)
        }
        marks.connectionOpened(at: start, isSameHistory: true, now: now)
        // Sets a first mark at once: a client without a mark would count as one of the last process's.
        marks.handedOn()
        stored = nil
    }

    /// The feed has connected again and continues at `cursor`.
    package mutating func connectionRestored(at cursor: Snapshot, isSameHistory: Bool, now: ContinuousClock.Instant) {
        if case .snapshot(let snapshot) = restart, !isSameHistory || !snapshot.precedes(cursor) {
            (restart, restored) = (.snapshot(cursor), cursor)
        }
        restored = restored?.intersection(cursor)
        marks.connectionOpened(at: cursor, isSameHistory: isSameHistory, now: now)
        stored = nil
    }

    // MARK: Handing on

    /// Something was handed on, or happened, that the next mark has to follow.
    package mutating func handedOn(_ count: Int) { marks.handedOn(count) }

    /// A window ended here.
    ///
    /// - Returns: the new mark, if one is due.
    package mutating func windowEnded(
        at end: Snapshot, in epoch: DatabaseEpoch? = nil, now: ContinuousClock.Instant
    ) -> Int? {
        self.epoch = epoch ?? self.epoch
        return marks.windowEnded(at: end, oldest: oldestMark, now: now)
    }

    /// Updates what clients still need.
    ///
    /// - Parameter oldest: the oldest mark from which members may recover; nil if none may. Not evaluated while clients of
    ///   the last process may come back, because these need everything.
    package mutating func updateNeeds(oldest: @autoclosure () -> Int?, now: ContinuousClock.Instant) {
        if let restartUntil, now < restartUntil { oldestMark = 0 } else { oldestMark = oldest() ?? marks.latest }
    }
}
