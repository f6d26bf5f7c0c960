import Logging
import Matching
import Postgres
import Wire
import Workers

/// What a feed knows that outlives a connection. Confined to the feed's thread.
///
/// Each part owns its rules: where the feed is in the outbox, what cursors are tagged with, what clients may still need,
/// which tables there are. The parts of a session that ask Postgres about them are in `FeedSession`.
final class FeedState {
    var position = FeedPosition()
    var epochs = EpochRenewal()
    let recovery: RecoveryPlaces
    var patience: WindowPatience
    var tables = KnownTables()
    /// What the outbox was like when it was last looked at; nil before the first time in this history.
    var outbox: OutboxCheck?
    var statistics = FeedStatistics()
    /// The backends that this process has read by; the server may not have ended them all.
    var readers: Set<Int32> = []
    /// Where connecting starts over is decided by this alone.
    var retry: RetrySchedule

    init(_ configuration: FeedConfiguration, _ recovery: RecoveryPlaces) {
        self.recovery = recovery
        retry = RetrySchedule(first: configuration.firstRetry)
        patience = WindowPatience(least: configuration.statementLimit)
    }

    /// How clients are told where they are, if nothing is under way.
    var present: FeedCursor? {
        guard let epoch = epochs.current, let cursor = position.cursor else { return nil }
        return FeedCursor(epoch: epoch, at: cursor)
    }

    /// Takes over what the database knows of this hub.
    ///
    /// - Parameter isRestored: whether the database was found to be restored from a dump.
    func adopt(_ server: ServerPosition, isRestored: Bool, logger: Logger) {
        let news = position.adopt(server, isRestored: isRestored, knowing: epochs.known)
        if let news { logger.warning("\(news)") }
        if !position.isSameHistory { outbox = nil }
    }
}

/// The watched tables as the feed last read them, and since when they are so. Confined to the feed's thread.
struct KnownTables {
    private(set) var catalog = Catalog()
    /// Who was told all that this sees lacks nothing that was written while tables were others than in `catalog`. Nil
    /// until a window was read by that.
    private(set) var since: Snapshot?
    /// Whose access the catalog is to tell.
    var roles: Set<Name> = []

    mutating func adopt(_ fresh: Catalog, logger: Logger) {
        for warning in fresh.warnings where !catalog.warnings.contains(warning) { logger.warning("\(warning)") }
        if !fresh.hasSameTables(as: catalog) { since = nil }
        catalog = fresh
    }

    /// Tables may have been altered, and altered back, while nobody looked.
    mutating func mayHaveChanged() { since = nil }

    /// All up to here was read by the catalog.
    mutating func windowRead(upTo end: Snapshot) {
        if since == nil { since = end }
    }
}

/// What the parts of one connected session share: the connection that reads, what outlives it, and whom they tell.
struct FeedEnvironment {
    let configuration: FeedConfiguration
    let logger: Logger
    let consumer: any FeedConsumer
    let state: FeedState
    let reader: PostgresConnection
}
