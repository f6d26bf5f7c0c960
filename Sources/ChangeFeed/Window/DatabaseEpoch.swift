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
