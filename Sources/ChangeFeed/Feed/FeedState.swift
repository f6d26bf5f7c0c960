import Logging
import Matching
import Postgres
import Wire
import Workers

/// The feed's knowledge that outlives a connection. Confined to the feed's thread.
///
/// Each part owns its rules: the position in the outbox, the tags of cursors, the needs of clients, the tables. The parts
/// of a session that query Postgres about them are in `FeedSession`.
final class FeedState {
    var position = FeedPosition()
    var epochs = EpochRenewal()
    let recovery: RecoveryPlaces
    var patience: WindowPatience
    var tables = KnownTables()
    /// The outbox at the last check; nil before the first check in this history.
    var outbox: OutboxCheck?
    var statistics = FeedStatistics()
    /// The backends that this process has read with; the server may not have ended them all.
    var readers: Set<Int32> = []
    /// The only judge of when connecting starts over.
    var retry: RetrySchedule

    init(_ configuration: FeedConfiguration, _ recovery: RecoveryPlaces) {
        self.recovery = recovery
        retry = RetrySchedule(first: configuration.firstRetry)
        patience = WindowPatience(least: configuration.statementLimit)
    }

    /// The position that clients are told, if nothing is under way.
    var present: FeedCursor? {
        guard let epoch = epochs.current, let cursor = position.cursor else { return nil }
        return FeedCursor(epoch: epoch, at: cursor)
    }

    /// Adopts the database's knowledge of this hub.
    ///
    /// - Parameter isRestored: true if the database was found to be restored from a dump.
    func resumeFromServer(_ server: ServerPosition, isRestored: Bool, logger: Logger) {
        let news = position.resumeFromServer(server, isRestored: isRestored, knowing: epochs.known)
        if let news { logger.warning("\(news)") }
        if !position.isSameHistory { outbox = nil }
    }
}

/// The watched tables as the feed last read them, and since when they have been so. Confined to the feed's thread.
struct KnownTables {
    private(set) var catalog = Catalog()
    /// A client that has everything this snapshot sees lacks no change written while the tables differed from `catalog`.
    /// Nil until a window was read with `catalog`.
    private(set) var since: Snapshot?
    /// Roles whose access the catalog must cover.
    var roles: Set<Name> = []

    mutating func replaceCatalog(_ fresh: Catalog, logger: Logger) {
        for warning in fresh.warnings where !catalog.warnings.contains(warning) { logger.warning("\(warning)") }
        if !fresh.hasSameTables(as: catalog) { since = nil }
        catalog = fresh
    }

    /// Tables may have been altered, and altered back, while the feed was disconnected.
    mutating func mayHaveChanged() { since = nil }

    /// Everything up to this snapshot was read with the current catalog.
    mutating func windowRead(upTo end: Snapshot) {
        if since == nil { since = end }
    }
}

/// The shared environment of a connected session's parts: the reading connection, the lasting state, and the consumer.
struct FeedEnvironment {
    let configuration: FeedConfiguration
    let logger: Logger
    let consumer: any FeedConsumer
    let state: FeedState
    let reader: PostgresConnection
}
