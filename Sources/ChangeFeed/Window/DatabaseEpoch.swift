/// What a cursor is tagged with: which history of which database its numbers belong to. A random number that a hub
/// writes into the database before it tags cursors with it, anew when it connects and every few seconds while changes
/// flow (Migration010Epochs.sql). A database that does not know it is none that the cursor can be compared with.
package struct DatabaseEpoch: Sendable, Hashable {
    package let value: UInt32

    package init(value: UInt32) { self.value = value }

    /// Of hubs before there were epochs: made from what a failover changes, and a restore does not.
    ///
    /// - Parameters:
    ///   - systemIdentifier: `pg_control_system()`'s.
    ///   - timeline: of the WAL; it changes whenever a standby is promoted.
    package init(systemIdentifier: String, timeline: Int) {
        // FNV-1a: the same on every hub, unlike Swift's own hashes.
        value = "\(systemIdentifier)/\(timeline)".utf8.reduce(2_166_136_261) { ($0 ^ UInt32($1)) &* 16_777_619 }
    }

    /// Never 0, which stands for those of before.
    static func random() -> DatabaseEpoch { DatabaseEpoch(value: .random(in: 1...UInt32.max)) }
}

/// What the database knows of the epoch of a cursor that a client brings.
package enum KnownEpoch: Sendable, Equatable {
    /// The server has run without a break since, so nothing can have been put back or forgotten.
    case sameRun
    /// The server was started or has crashed since. The hub that gave the cursor out certainly got up to there, in this
    /// server's own history; whatever lies behind may be another history's.
    case earlierRun(upTo: Snapshot, sameTimeline: Bool)

    /// Where a client with this cursor goes on; nil where it has to load its data again.
    ///
    /// Behind what is certain, a restored server cannot be told from one that was merely started again, as long as the
    /// epoch is known: so the client goes back to what is certain, and what it has comes again. A promoted standby is
    /// known to have a history of its own there.
    package func start(from cursor: FeedCursor) -> FeedCursor? {
        guard case .earlierRun(let certain, let isSameTimeline) = self, !cursor.window.precedes(certain) else {
            return cursor
        }
        guard isSameTimeline else { return nil }
        return FeedCursor(epoch: cursor.epoch, at: cursor.seen.precedes(certain) ? cursor.seen : certain)
    }
}

/// The epochs that this process has written, and when another is due. Pure.
///
/// An epoch that a crash of the server can forget is of no use, and a commit that waits for the disk holds changes up. So
/// between two connects an epoch is written without waiting, and tags cursors once the WAL is known to be safe beyond it.
package struct EpochRenewal: Sendable {
    package typealias Instant = ContinuousClock.Instant

    /// How far behind what is restored a cursor's epoch can be known, at most.
    package static let interval = Duration.seconds(5)
    /// Enough to tell a server that was put back from another one.
    private static let mostKept = 64

    /// The latest last.
    package private(set) var known: [DatabaseEpoch] = []
    /// Written, and not yet known to be safe; with a place in the WAL that lies after it, once there is one.
    private var pending: (epoch: DatabaseEpoch, provenBy: Int64?)?
    private var dueAt: Instant?

    package init() {}

    /// A row was written, and is safe.
    package mutating func connected(with epoch: DatabaseEpoch, at now: Instant) {
        pending = nil
        add(epoch)
        dueAt = now + Self.interval
    }

    /// A row could not be written.
    package mutating func failed(at now: Instant) {
        pending = nil
        dueAt = now + Self.interval
    }

    package func isDue(at now: Instant) -> Bool { pending == nil && dueAt.map { $0 <= now } ?? true }

    /// A row was written between two connects.
    package mutating func wrote(_ epoch: DatabaseEpoch, at now: Instant) {
        pending = (epoch, nil)
        dueAt = now + Self.interval
    }

    /// - Parameters:
    ///   - insertedAt: a place in the WAL behind all that was written before.
    ///   - flushedTo: up to where the WAL was safe then.
    /// - Returns: what cursors are to be tagged with from now on, if it is another.
    package mutating func proven(insertedAt: Int64, flushedTo: Int64) -> DatabaseEpoch? {
        guard let (epoch, place) = pending else { return nil }
        guard let place else {
            pending = (epoch, insertedAt)
            return nil
        }
        guard place <= flushedTo else { return nil }
        pending = nil
        add(epoch)
        return epoch
    }

    private mutating func add(_ epoch: DatabaseEpoch) {
        known.append(epoch)
        if known.count > Self.mostKept { known.removeFirst() }
    }
}
