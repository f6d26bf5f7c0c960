/// The changes handed on since a cursor that is known to survive a crash of the server.
///
/// After a lost connection, reading starts again at the stored cursor: only that cursor certainly fits the server's
/// history, because a crash or a failover may lose transactions and reuse their ids. Changes handed on since then come
/// again and are skipped here.
package struct DeliveredChanges: Sendable {
    /// A crashed server may assign an id twice; together with the time of the write it identifies one change.
    package struct Key: Hashable, Sendable {
        package let id: Int64
        package let writtenAt: UInt64

        package init(id: Int64, writtenAt: UInt64) {
            self.id = id
            self.writtenAt = writtenAt
        }
    }

    private struct Store: Sendable {
        /// Number of keys, counted from the first ever, that its cursor covers.
        let covered: Int
        /// A place in the WAL after the store's commit; known when the next store is made.
        var provenBy: Int64?
    }

    private var keys: [Key] = []
    private var forgotten = 0
    /// Number of keys, counted from the first ever, that the cursor in memory covers: those of whole windows.
    private var completed = 0
    private var stores: [Store] = []

    package init() {}

    /// The changes that a window read after a reconnect must skip.
    package func toSkip() -> Set<Key> { Set(keys) }

    package mutating func addKey(_ key: Key) { keys.append(key) }

    /// The cursor moved past everything handed on so far.
    package mutating func windowCompleted() { completed = forgotten + keys.count }

    /// Like `covered`, for the cursor at which reading starts again.
    package var coveredByStored: Int { forgotten }

    /// Number of changes, counted from the first ever, handed on up to the cursor in memory.
    package var covered: Int { completed }

    /// A cursor was stored.
    ///
    /// - Parameters:
    ///   - covered: the value of `covered` at this cursor.
    ///   - insertedAt: the WAL's insert position when the cursor was written, before its commit.
    ///   - flushedTo: the place up to which the WAL was flushed then.
    package mutating func cursorStored(covering covered: Int, insertedAt: Int64, flushedTo: Int64) {
        if let last = stores.indices.last, stores[last].provenBy == nil { stores[last].provenBy = insertedAt }
        if let safe = stores.lastIndex(where: { $0.provenBy.map { $0 <= flushedTo } ?? false }) {
            // After a reconnect, the same cursor may be stored again with a lower count.
            keys.removeFirst(max(0, stores[safe].covered - forgotten))
            forgotten = max(forgotten, stores[safe].covered)
            stores.removeSubrange(...safe)
        }
        stores.append(Store(covered: covered, provenBy: nil))
    }

    package var count: Int { keys.count }
}
