/// What outlives a connection.
struct FeedProgress {
    var cursor: Snapshot?
    /// pg_control_system()'s: another cluster's transaction ids mean nothing to this cursor.
    var systemIdentifier: String?
    var handed = HandedChanges()
    /// Handed on since the cursor; to be left out of the next window.
    var skip: Set<HandedChanges.Key> = []
    /// The cursor moved past changes since it was stored.
    var isUnstored = false
    var catalog = Catalog()
    /// Whose access the catalog is to tell.
    var roles: Set<String> = []
    var statistics = FeedStatistics()
    /// Where connecting starts over is decided by this alone.
    var backoff = Backoff()
}
