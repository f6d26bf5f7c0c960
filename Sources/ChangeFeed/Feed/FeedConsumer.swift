import Hub
package import Matching
import Postgres

/// Consumes what the feed reads, and answers its queries. Called on the feed's thread only, one call at a time.
package protocol FeedConsumer: WindowConsumer {
    /// The feed is connected and listens: every commit after this call is delivered. Called again after a reconnect.
    func feedDidBecomeReady(_ catalog: Catalog)

    /// Tables were watched, unwatched, altered or dropped, or access to them changed. An unchanged table stays the
    /// identical object.
    func catalogChanged(_ catalog: Catalog)

    func statusChanged(_ status: FeedStatus)

    /// All changes readable at the poll's start have been consumed.
    ///
    /// - Throws: the same errors as the consumption of entries.
    func pollEnded() throws

    /// This mark, and the cursor, cover everything consumed so far. Not called after every window; marks grow.
    func markReached(_ mark: Int, at cursor: FeedCursor)

    /// Changes were deleted before they were consumed. Called before any mark that covers later changes.
    ///
    /// - Parameter pruned: sees every transaction that may have lost a change.
    func changesAreGone(upTo pruned: Snapshot)

    /// Changes of these tables could not be recorded. Called when the window that reports the loss is read.
    func changesAreLost(of tables: Set<UInt32>)

    /// The oldest mark whose snapshots must be kept; nil if none is needed. Read about once a second.
    var oldestMark: Int? { get }

    /// No hub of this name ever served this database, so no client can have missed anything from one.
    func foundNoEarlierHub()

    /// Number of changes that the observer took, and number that it settled.
    var observed: (taken: Int, settled: Int) { get }

    /// Members that must be sent the changes they missed.
    var recoveries: RecoveryScheduler? { get }
}

extension FeedConsumer {
    package func wantsTable(_ table: Table) -> Bool { true }
    package func windowBegan(_ cursors: CursorWindow) {}
    package func pollEnded() throws {}
    package func markReached(_ mark: Int, at cursor: FeedCursor) {}
    package func changesAreGone(upTo pruned: Snapshot) {}
    package func changesAreLost(of tables: Set<UInt32>) {}
    package var oldestMark: Int? { nil }
    package func foundNoEarlierHub() {}
    package var recoveries: RecoveryScheduler? { nil }
    package var observed: (taken: Int, settled: Int) { (0, 0) }
}

/// A recipient of changes besides the subscribers that must not lose any when the hub is killed: push.
///
/// The observer takes changes without waiting and settles them later, on its own thread. The position that the feed stores
/// never passes an unsettled change, so whatever a killed hub had taken and not settled comes again.
package protocol ChangeObserver: AnyObject, Sendable {
    /// Called on the feed's thread; must not wait.
    func takeChanges(_ changes: [RowChange])

    /// True if the observer needs changes of a table; of other tables it may get some or none. Constant for its lifetime.
    func observesTable(_ table: Table) -> Bool

    /// True if the observer asks the loops for receipts of a table's new rows (`ReceiptQuestion`).
    func wantsReceipts(_ table: Table) -> Bool

    /// Number of changes taken, and how many of these, counted from the first, are settled. From any thread.
    var taken: Int { get }
    var settled: Int { get }
}

extension ChangeObserver {
    package func wantsReceipts(_ table: Table) -> Bool { observesTable(table) }
}
