package import Hub
import Postgres
import Synchronization

/// What the feed knows of the past while recoveries begin.
struct FeedHistory {
    let epoch: DatabaseEpoch
    /// What the database knows of the epochs of the cursors that members bring.
    let epochs: [DatabaseEpoch: KnownEpoch]
    /// Up to here all was handed on; what a member misses ends here.
    let present: Snapshot
    let marks: Watermarks
    let restart: RestartPoint
    /// `RecoveryPoints.restored`.
    let restored: Snapshot?
    /// As `pruned(on:)` tells it.
    let pruned: Snapshot?

    enum Start {
        case from(FeedCursor)
        /// - Parameter rest: from where on everything is there and can be told; nil where that is not known.
        case refused(RecoveryRefusal, rest: FeedCursor?)
    }

    func start(from point: RecoveryPoint) -> Start {
        switch point {
        case .cursor(let text): return judged(text)
        case .mark(let mark):
            // Mark 0 is before the first.
            guard mark > 0 else { return start(from: .restart) }
            guard let snapshot = marks.snapshot(at: mark) else { return .refused(.tooOld, rest: nil) }
            return kept(FeedCursor(epoch: epoch, at: snapshot))
        case .restart:
            switch restart {
            case .foreign: return .refused(.otherDatabase, rest: nil)
            case .snapshot(let snapshot): return kept(FeedCursor(epoch: epoch, at: snapshot))
            }
        case .restored(let text):
            guard case .snapshot = restart, let place = restart.place(text, upTo: restored) else {
                return start(from: .restart)
            }
            return kept(FeedCursor(epoch: epoch, at: place.intersection(present)))
        case .snapshot(let text):
            guard let snapshot = Snapshot(text) else { return .refused(.malformed, rest: nil) }
            // The other hub may be ahead of this one, where all that comes next comes live.
            return kept(FeedCursor(epoch: epoch, at: snapshot.intersection(present)))
        case .peer(let cursor, let otherwise):
            // What cannot be told from there cannot be told from what lies before it, either.
            switch judged(cursor) {
            case .refused(let refusal, _) where refusal != .tooOld: return start(from: .snapshot(otherwise))
            case let start: return start
            }
        case .earliest(let points):
            var (earliest, refused, lost): (Snapshot?, RecoveryRefusal?, RecoveryRefusal?)
            for point in points {
                switch (start(from: point), point) {
                // It stands for one client alone, who may have made it up: the others are sent what they missed.
                case (.refused(let refusal, _), .cursor): refused = refusal
                case (.refused(let refusal, let rest), _):
                    lost = refusal
                    earliest = rest.map { earliest?.intersection($0.seen) ?? $0.seen } ?? earliest
                case (.from(let cursor), _): earliest = earliest?.intersection(cursor.seen) ?? cursor.seen
                }
            }
            let start = earliest.map { FeedCursor(epoch: epoch, at: $0) }
            if let lost { return .refused(lost, rest: start) }
            return start.map { kept($0) } ?? .refused(refused ?? .malformed, rest: nil)
        }
    }

    /// About how many changes lie between there and the present; nil where that is not known.
    func distance(from point: RecoveryPoint) -> Int? {
        if case .mark(let mark) = point, mark > 0 { marks.changes(since: mark) } else { nil }
    }

    private func judged(_ text: String) -> Start {
        guard let cursor = FeedCursor(text) else { return .refused(.malformed, rest: nil) }
        var start = cursor
        if cursor.epoch != epoch {
            guard let known = epochs[cursor.epoch]?.start(from: cursor) else {
                return .refused(.otherDatabase, rest: nil)
            }
            // What it is told from here on is this hub's word.
            start = FeedCursor(epoch: epoch, seen: known.seen, window: known.window, id: known.id)
        }
        // The present was read after the client asked, so no hub can have handed on more than it sees.
        guard start.window.precedes(present) else { return .refused(.ahead, rest: nil) }
        return kept(start)
    }

    /// Changes that are left from before the last loss are not told: its client loads its data when it is told of the loss, and an older
    /// version that comes then would stay for good where the one behind it is what was lost.
    private func kept(_ cursor: FeedCursor) -> Start {
        guard let pruned, !pruned.precedes(cursor.seen) else { return .from(cursor) }
        return .refused(.tooOld, rest: FeedCursor(epoch: epoch, at: pruned.intersection(present)))
    }

    /// Sees every transaction of which a change may be gone; nil where nothing is.
    static func pruned(on reader: PostgresConnection) throws -> Snapshot? {
        let row = try reader.query(RecoverySQL.recoveryGround)
        return Snapshot(prunedUpTo: row.text(0, 0), sparing: row.text(0, 1))
    }
}

extension RecoveryPoint {
    /// Its client said it itself, and loads its data anew where it is refused.
    var isCursor: Bool { if case .cursor = self { true } else { false } }

    /// Of all cursors that it is made of: whoever judges it has to know them (`FeedHistory.epochs`).
    package var epochs: Set<DatabaseEpoch> {
        switch self {
        case .cursor(let text), .peer(let text, otherwise: _): FeedCursor(text).map { [$0.epoch] } ?? []
        case .earliest(let points): points.reduce(into: []) { $0.formUnion($1.epochs) }
        case .mark, .restart, .restored, .snapshot: []
        }
    }
}

/// Where clients go on that the hub's last process served.
package enum RestartPoint: Sendable, Equatable {
    /// Where nothing was stored, where this process began: a member that came before the first mark starts there, too.
    case snapshot(Snapshot)
    /// What was stored does not fit this database.
    case foreign

    /// Where one of them stood, which lies between there and where this process began.
    ///
    /// - Returns: nil where nothing is known of that.
    package func place(_ text: String, upTo limit: Snapshot?) -> Snapshot? {
        guard case .snapshot(let left) = self, let limit else { return nil }
        guard let place = Snapshot(text)?.intersection(limit), left.precedes(place) else { return left }
        return place
    }
}

/// The same for several threads: how far the feed was when is asked by whoever writes down who is where.
package final class RecoveryPlaces: Sendable {
    private let points: Mutex<RecoveryPoints>

    package init(window: Duration) { points = Mutex(RecoveryPoints(window: window)) }

    package func use<Answer: Sendable>(_ body: (inout RecoveryPoints) -> Answer) -> Answer {
        points.withLock { body(&$0) }
    }

    /// What whoever stands there certainly has, as Postgres writes snapshots; nil where that is not known.
    package func snapshot(at point: RecoveryPoint) -> String? {
        // Before the first window there is no cursor of this history, and the marks are there.
        points.withLock { $0.seen(by: point, in: $0.epoch ?? DatabaseEpoch(value: 0))?.text }
    }
}

/// From where on clients may yet be sent what they missed: what they remember as marks, and where the hub's last process
/// left its own. Outlives a connection; pure.
package struct RecoveryPoints {
    package private(set) var marks = Watermarks()
    /// As it was found when this process began; nil before.
    package private(set) var restart: RestartPoint?
    /// Up to where it counts what that process wrote down of single clients.
    package private(set) var restored: Snapshot?
    /// In which history windows are read; nil before the first.
    private(set) var epoch: DatabaseEpoch?
    /// What was last stored for the next process to begin with; nil where it has to be stored anew.
    package var stored: Snapshot?
    /// Until when clients of the last process may come back.
    private var restartUntil: ContinuousClock.Instant?
    /// The mark from where on snapshots are needed, as it was when it was last asked for.
    private var oldestMark = 0
    /// For how long after the hub's start those come back whom its last process served.
    private let window: Duration

    package init(window: Duration) {
        self.window = window
        marks.grace = window + .seconds(10)
    }

    /// What every client certainly has, or will be asked for; nil where no mark tells.
    package var needed: Snapshot? { marks.snapshot(at: oldestMark) }

    /// Where a point lies for every hub of the database; nil where it cannot be told.
    package func locate(_ point: RecoveryPoint, in epoch: DatabaseEpoch) -> FeedCursor? {
        // Whoever said it may have had it from another history: that is for whoever reads it to judge.
        if case .cursor(let text) = point { return FeedCursor(text) }
        return seen(by: point, in: epoch).map { FeedCursor(epoch: epoch, at: $0) }
    }

    fileprivate func seen(by point: RecoveryPoint, in epoch: DatabaseEpoch) -> Snapshot? {
        func seen(_ text: String) -> Snapshot? { FeedCursor(text).flatMap { $0.epoch == epoch ? $0.seen : nil } }
        switch point {
        case .mark(let mark) where mark > 0: return marks.snapshot(at: mark)
        case .mark, .restart: if case .snapshot(let snapshot) = restart { return snapshot } else { return nil }
        case .restored(let text): return restart?.place(text, upTo: restored)
        case .cursor(let text): return seen(text)
        case .snapshot(let text): return Snapshot(text)
        case .peer(let text, let otherwise): return seen(text) ?? Snapshot(otherwise)
        case .earliest(let points):
            var earliest: Snapshot?
            for point in points {
                guard let one = self.seen(by: point, in: epoch) else { return nil }
                earliest = earliest?.intersection(one) ?? one
            }
            return earliest
        }
    }

    // MARK: Connecting

    /// This process has connected for the first time.
    ///
    /// - Parameters:
    ///   - left: where the last process left its clients; nil where there was none.
    ///   - position: the stored place, nil where it does not fit this database.
    ///   - cursor: where the feed goes on.
    package mutating func began(
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
            // Mark 0 stands for it, so that it is stored again for as long as anybody may need it.
            start = left.precedes(position) ? left : position
            restart = .snapshot(start)
        }
        marks.connected(at: start, isSameHistory: true, now: now)
        // A first mark at once, so that hardly anybody has none, which would count as having come with the last process.
        marks.handedOn()
        stored = nil
    }

    /// The feed has connected again and goes on at `cursor`.
    package mutating func reconnected(at cursor: Snapshot, isSameHistory: Bool, now: ContinuousClock.Instant) {
        if case .snapshot(let snapshot) = restart, !isSameHistory || !snapshot.precedes(cursor) {
            (restart, restored) = (.snapshot(cursor), cursor)
        }
        restored = restored?.intersection(cursor)
        marks.connected(at: cursor, isSameHistory: isSameHistory, now: now)
        stored = nil
    }

    // MARK: Handing on

    /// Something was handed on, or happened, that the next mark has to come after.
    package mutating func handedOn(_ count: Int) { marks.handedOn(count) }

    /// A window ended here.
    ///
    /// - Returns: the new mark, if it is time for one.
    package mutating func windowEnded(
        at end: Snapshot, in epoch: DatabaseEpoch? = nil, now: ContinuousClock.Instant
    ) -> Int? {
        self.epoch = epoch ?? self.epoch
        return marks.windowEnded(at: end, oldest: oldestMark, now: now)
    }

    /// Looks again at what clients still need.
    ///
    /// - Parameter oldest: the mark from where on members may recover; nil where nobody may. Not asked while clients of the
    ///   last process may come back, who need all.
    package mutating func follow(oldest: @autoclosure () -> Int?, now: ContinuousClock.Instant) {
        if let restartUntil, now < restartUntil { oldestMark = 0 } else { oldestMark = oldest() ?? marks.latest }
    }
}
