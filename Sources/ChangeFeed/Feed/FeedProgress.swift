/// What outlives a connection.
struct FeedProgress {
    var cursor: Snapshot?
    /// pg_control_system()'s: another cluster's transaction ids mean nothing to this cursor.
    var systemIdentifier: String?
    /// See `FeedPosition.timeline`.
    var timeline: Int?
    /// The server goes on where this process knew it to be, or somewhat before; not another database, nor a dump.
    var isSameHistory = true
    var handed = DeliveredChanges()
    var settling = StorablePlaces()
    /// Handed on since the cursor; to be left out of the next window.
    var skip: Set<DeliveredChanges.Key> = []
    /// The database has a cursor of this hub's, of whatever history.
    var hasStoredCursor = false
    /// The cursor moved past changes since it was stored.
    var isUnstored = false
    var catalog = Catalog()
    /// Who was told all that this sees lacks nothing that was written while tables were others than in `catalog`. Nil
    /// until a window was read by that.
    var tablesSince: Snapshot?
    /// Whose access the catalog is to tell.
    var roles: Set<String> = []
    var statistics = FeedStatistics()
    /// What cursors are tagged with; nil until the database was reached once.
    var epoch: DatabaseEpoch?
    var epochs = EpochRenewal()
    var marks = Watermarks()
    /// The last look at what went from the outbox; nil before the first in this history.
    var outboxLook: OutboxCheck?
    /// The mark from where on snapshots are needed, as it was when it was last asked for.
    var oldestMark = 0
    /// Where the hub's last process left its clients; as it was found when this process began.
    var restart: RestartPoint?
    /// Until when clients of the last process may come back.
    var restartUntil: ContinuousClock.Instant?
    /// What was last stored for the next process to begin with.
    var storedRecovery: Snapshot?
    /// The sessions that this process has read by.
    var readers: Set<Int32> = []
    /// Where connecting starts over is decided by this alone.
    var backoff = Backoff()
}

/// Where clients go on that the hub's last process served.
enum RestartPoint {
    /// Where nothing was stored, where this process began: a member that came before the first mark starts there, too.
    case snapshot(Snapshot)
    /// What was stored does not fit this database.
    case foreign
}

extension FeedProgress {
    /// What every client certainly has, or will be asked for.
    var recovery: Snapshot? { marks.snapshot(at: oldestMark) ?? cursor }

    /// How clients are told where they are, if nothing is under way.
    var present: FeedCursor? {
        guard let epoch, let cursor else { return nil }
        return FeedCursor(epoch: epoch, at: cursor)
    }
}
