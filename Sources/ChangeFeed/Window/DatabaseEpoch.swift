/// A cursor's tag: the history of the database that its numbers belong to. A random number that a hub writes into the
/// database before it tags cursors with it, at each connect and every few seconds while changes flow
/// (SchemaRecovery.sql). If a database does not know the epoch, the cursor cannot be compared with it.
package struct DatabaseEpoch: Sendable, Hashable {
    package let value: UInt32

    package init(value: UInt32) { self.value = value }

    /// The epoch of hubs from before epochs were stored: derived from values that a failover changes, and a restore does
    /// not.
    ///
    /// - Parameters:
    ///   - systemIdentifier: from `pg_control_system()`.
    ///   - timeline: the WAL's timeline, which changes whenever a standby is promoted.
    package init(systemIdentifier: String, timeline: Int) {
        // FNV-1a: the same on every hub, unlike Swift's own hashes.
        value = "\(systemIdentifier)/\(timeline)".utf8.reduce(2_166_136_261) { ($0 ^ UInt32($1)) &* 16_777_619 }
    }

    /// Never 0, which stands for the earlier kind.
    static func random() -> DatabaseEpoch { DatabaseEpoch(value: .random(in: 1...UInt32.max)) }
}

/// The database's knowledge of the epoch in a client's cursor.
package enum KnownEpoch: Sendable, Equatable {
    /// The server has run without a break since, so nothing can have been put back or lost.
    case sameRun
    /// The server was started or has crashed since. The hub that issued the cursor certainly got as far as this snapshot,
    /// in this server's own history; anything later may belong to another history.
    case earlierRun(upTo: Snapshot, sameTimeline: Bool)

    /// The cursor from which a client with this one continues; nil if it has to load its data again.
    ///
    /// As long as the epoch is known, a restored server is indistinguishable, past the certain part, from one that was
    /// merely restarted: so the client goes back to the certain part, and receives some changes again. A promoted standby
    /// is known to have a history of its own there.
    package func resumePoint(from cursor: FeedCursor) -> FeedCursor? {
        guard case .earlierRun(let certain, let isSameTimeline) = self, !cursor.window.precedes(certain) else {
            return cursor
        }
        guard isSameTimeline else { return nil }
        return FeedCursor(epoch: cursor.epoch, at: cursor.seen.precedes(certain) ? cursor.seen : certain)
    }
}
