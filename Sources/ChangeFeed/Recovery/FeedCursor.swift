/// What somebody has of the changes: all that one snapshot sees, and of what a later one sees those up to an id.
///
/// It is enough to go on from on any hub of the same database. The rows between the two snapshots are one window of the
/// feed, in which order is by id.
package struct FeedCursor: Sendable, Equatable {
    package let epoch: DatabaseEpoch
    /// S1: all it sees is had.
    package let seen: Snapshot
    /// S2, the window's end.
    package let window: Snapshot
    /// Of what the window brought, what is had.
    package let id: Int64

    package init(epoch: DatabaseEpoch, seen: Snapshot, window: Snapshot, id: Int64) {
        self.epoch = epoch
        self.seen = seen
        self.window = window
        self.id = id
    }

    /// At the end of a window.
    package init(epoch: DatabaseEpoch, at snapshot: Snapshot) {
        self.init(epoch: epoch, seen: snapshot, window: snapshot, id: 0)
    }

    func has(_ transaction: UInt64, _ id: Int64) -> Bool {
        seen.sees(transaction) || id <= self.id && window.sees(transaction)
    }
}
