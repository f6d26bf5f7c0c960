import Hub
package import Matching
import Postgres

/// Takes what the feed reads, and tells it what it needs to know. Called on the feed's thread only, one call at a time.
package protocol FeedConsumer: WindowConsumer {
    /// The feed is connected and listens: every commit after this call is delivered. Comes again after a reconnect.
    func feedDidBecomeReady(_ catalog: Catalog)

    /// Tables were watched, unwatched, altered or dropped, or who may see them changed. An unchanged table stays the
    /// identical object.
    func catalogChanged(_ catalog: Catalog)

    func statusChanged(_ status: FeedStatus)

    /// All of what there was to read has been consumed.
    ///
    /// - Throws: as `consume`.
    func pollEnded() throws

    /// All that was consumed up to now is covered by this mark, and by the cursor. Not after every window; marks grow.
    func marked(_ mark: Int, at cursor: FeedCursor)

    /// Changes were deleted that were not consumed yet. Comes before a mark that covers what came after them.
    ///
    /// - Parameter pruned: sees every transaction of which a change may be gone.
    func changesAreGone(upTo pruned: Snapshot)

    /// Changes of these tables could not be recorded. Comes when the window that says so is read.
    func changesAreLost(of tables: Set<UInt32>)

    /// The mark from where on snapshots are to be kept; nil where nobody needs any. Asked for about once a second.
    var oldestMark: Int? { get }

    /// No hub of this name ever served this database, so nobody can have missed anything of one.
    func nobodyIsFromBefore()

    /// How many changes the observer took, and has settled.
    var observed: (taken: Int, settled: Int) { get }

    /// Members who are to be sent what they missed.
    var recoveries: RecoveryScheduler? { get }
}

extension FeedConsumer {
    package func hears(_ table: Table) -> Bool { true }
    package func windowBegan(_ cursors: CursorWindow) {}
    package func pollEnded() throws {}
    package func marked(_ mark: Int, at cursor: FeedCursor) {}
    package func changesAreGone(upTo pruned: Snapshot) {}
    package func changesAreLost(of tables: Set<UInt32>) {}
    package var oldestMark: Int? { nil }
    package func nobodyIsFromBefore() {}
    package var recoveries: RecoveryScheduler? { nil }
    package var observed: (taken: Int, settled: Int) { (0, 0) }
}

/// Somebody beside the subscribers who is handed changes, and may not lose any when the hub is killed: push.
///
/// It takes them without waiting and settles them later, on a thread of its own. The place to go on from that the feed
/// stores never passes what is not settled, so whatever a killed hub had taken and not settled comes again.
package protocol ChangeObserver: AnyObject, Sendable {
    /// On the feed's thread; must not wait.
    func take(_ changes: [RowChange])

    /// Whether it needs changes of a table; of others it may be handed some or none. The same for as long as it lives.
    func observes(_ table: Table) -> Bool

    /// Whether it asks the loops for receipts of a table's new rows (`ReceiptQuestion`).
    func asksAfter(_ table: Table) -> Bool

    /// How many changes it took, and how many of these, counted from the first, are settled. From any thread.
    var taken: Int { get }
    var settled: Int { get }
}

extension ChangeObserver {
    package func asksAfter(_ table: Table) -> Bool { observes(table) }
}
