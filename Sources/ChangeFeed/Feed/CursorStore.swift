import Glibc
import Logging
import Postgres

/// Stores how far changes were handed on, so that the next process continues from there: the cursor itself, and the older
/// position that clients still need. One for each connection of the feed.
final class CursorStore {
    private let environment: FeedEnvironment
    private let epochs: EpochWriter
    private var storeAt: ContinuousClock.Instant
    private var isRefused = false
    /// When clients' needs are checked next.
    private var followAt: ContinuousClock.Instant
    private static let interval = Duration.milliseconds(100)

    init(_ environment: FeedEnvironment, epochs: EpochWriter, at now: ContinuousClock.Instant) {
        self.environment = environment
        self.epochs = epochs
        storeAt = now
        followAt = now
    }

    /// When the next store is due; nil while there is nothing to store.
    var dueAt: ContinuousClock.Instant? { environment.state.position.isUnstored ? storeAt : nil }

    /// Stores the newest place up to which the consumer's observer has settled everything it took.
    ///
    /// - Throws: `PostgresError`, also if Postgres refuses the cursor and has none of this hub's.
    func storeCursor() throws {
        let (state, configuration) = (environment.state, environment.configuration)
        guard let system = state.position.systemIdentifier else { return }
        guard let (place, isNewest) = state.position.storablePlace(settled: environment.consumer.observed.settled)
        else {
            storeAt = .now + Self.interval
            return
        }
        let recovery = state.recovery.withPoints { $0.needed } ?? state.position.cursor ?? place.cursor
        let row: QueryResult
        do {
            row = try environment.reader.query(
                FeedSQL.storeCursor,
                [
                    configuration.node, system, place.cursor.text, recovery.text,
                    state.position.timeline.map(String.init),
                ])
        } catch let error as PostgresError where error.kind == .server {
            return try handleRefusal(error)
        }
        if isRefused { environment.logger.notice("The hub's place in the feed is stored again.") }
        isRefused = false
        storeAt = .now + Self.interval
        let (insertedAt, flushedTo) = (row.integer(0, 0) ?? .max, row.integer(0, 1) ?? 0)
        state.recovery.withPoints { $0.stored = recovery }
        state.position.placeStored(place, isNewest: isNewest, insertedAt: insertedAt, flushedTo: flushedTo)
        try epochs.renewEpoch(insertedAt: insertedAt, flushedTo: flushedTo)
    }

    /// Checks, about once a second, what clients still need, and schedules a store if it moved. Part of a poll, so that an
    /// idle hub does not wake up for it.
    func followRecovery(now: ContinuousClock.Instant) {
        guard now >= followAt else { return }
        followAt = now + .seconds(1)
        let (state, consumer) = (environment.state, environment.consumer)
        let (needed, stored) = state.recovery.withPoints {
            $0.updateNeeds(oldest: consumer.oldestMark, now: now)
            return ($0.needed, $0.stored)
        }
        if (needed ?? state.position.cursor) != stored {
            state.position.isUnstored = true
        }
    }

    /// Stores the last cursor when the hub stops. Unsettled changes come again at the next start, to clients as well, so
    /// they get a moment to settle.
    func storeFinalCursor() throws {
        followAt = .now
        followRecovery(now: .now)
        let end = ContinuousClock.now + .seconds(1)
        let consumer = environment.consumer
        while consumer.observed.settled < consumer.observed.taken, ContinuousClock.now < end { usleep(2000) }
        if environment.state.position.isUnstored { try storeCursor() }
    }

    /// Handles a refused store, as when the disk is full. Changes are still handed on, but a restarted hub would repeat
    /// more of them.
    ///
    /// - Throws: if no cursor is stored at all: the next process would assume that no client was served before, and would
    ///   deliver no missed changes.
    private func handleRefusal(_ error: PostgresError) throws {
        guard environment.state.position.hasStoredCursor else {
            throw PostgresError(
                .server,
                """
                Postgres does not store where this hub begins (roost.cursor), without which a killed hub would lose changes; \
                let it be written: \(error.message)
                """)
        }
        storeAt = .now + .seconds(1)
        guard !isRefused else { return }
        isRefused = true
        environment.logger.warning(
            """
            Postgres does not store how far changes have been delivered, so a restarted hub would repeat them; the hub \
            tries again every second: \(error.message)
            """)
    }
}
