/// Which changes were handed on since a cursor that is known to survive a crash of the server.
///
/// After a connection is lost, reading starts again at the stored cursor: only of that one it is certain that it fits
/// the server's history, as a crash or a failover may forget transactions and give their ids to others. What was handed
/// on since then comes again and is skipped here.
package struct DeliveredChanges: Sendable {
    /// The id alone may be given out twice by a crashed server; with the time of the write it is one change.
    package struct Key: Hashable, Sendable {
        package let id: Int64
        package let writtenAt: UInt64

        package init(id: Int64, writtenAt: UInt64) {
            self.id = id
            self.writtenAt = writtenAt
        }
    }

    private struct Store: Sendable {
        /// How many keys, counted from the first ever, its cursor covers.
        let covered: Int
        /// A place in the WAL that lies after the store's commit; known when the next store is made.
        var provenBy: Int64?
    }

    private var keys: [Key] = []
    private var forgotten = 0
    /// How many keys, counted from the first ever, the cursor in memory covers: those of whole windows.
    private var completed = 0
    private var stores: [Store] = []

    package init() {}

    /// What a window read after a reconnect must leave out.
    package func toSkip() -> Set<Key> { Set(keys) }

    package mutating func handed(_ key: Key) { keys.append(key) }

    /// The cursor moved past all that was handed on so far.
    package mutating func windowCompleted() { completed = forgotten + keys.count }

    /// As `covered`, for the cursor that reading starts again at.
    package var coveredByStored: Int { forgotten }

    /// How many were handed on up to the cursor in memory, counted from the first ever.
    package var covered: Int { completed }

    /// A cursor was stored.
    ///
    /// - Parameters:
    ///   - covered: as it was at this cursor.
    ///   - insertedAt: where the WAL stood when the cursor was written, before its commit.
    ///   - flushedTo: up to where the WAL was safe then.
    package mutating func stored(covering covered: Int, insertedAt: Int64, flushedTo: Int64) {
        if let last = stores.indices.last, stores[last].provenBy == nil { stores[last].provenBy = insertedAt }
        if let safe = stores.lastIndex(where: { $0.provenBy.map { $0 <= flushedTo } ?? false }) {
            // After a reconnect the same cursor may be stored again as covering less.
            keys.removeFirst(max(0, stores[safe].covered - forgotten))
            forgotten = max(forgotten, stores[safe].covered)
            stores.removeSubrange(...safe)
        }
        stores.append(Store(covered: covered, provenBy: nil))
    }

    package var count: Int { keys.count }
}
