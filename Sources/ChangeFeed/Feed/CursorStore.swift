import Glibc
import Logging
import Postgres

/// Stores how far changes were handed on, so that the next process goes on there: the cursor itself, and what clients still
/// need of what came before it. One for each connection of the feed.
final class CursorStore {
    private let environment: FeedEnvironment
    private let epochs: EpochWriter
    private var storeAt: ContinuousClock.Instant
    private var isRefused = false
    /// When clients' needs are looked at again.
    private var followAt: ContinuousClock.Instant
    private static let interval = Duration.milliseconds(100)

    init(_ environment: FeedEnvironment, epochs: EpochWriter, at now: ContinuousClock.Instant) {
        self.environment = environment
        self.epochs = epochs
        storeAt = now
        followAt = now
    }

    /// When there is something to be stored; nil while there is nothing.
    var dueAt: ContinuousClock.Instant? { environment.state.position.isUnstored ? storeAt : nil }

    /// Stores the newest place behind which all is settled that the consumer's observer took.
    ///
    /// - Throws: `PostgresError`, also where Postgres takes no cursor and has none of this hub's.
    func store() throws {
        let (state, configuration) = (environment.state, environment.configuration)
        guard let system = state.position.systemIdentifier else { return }
        guard let (place, isNewest) = state.position.storable(settled: environment.consumer.observed.settled) else {
            storeAt = .now + Self.interval
            return
        }
        let recovery = state.recovery.use { $0.needed } ?? state.position.cursor ?? place.cursor
        let row: QueryResult
        do {
            row = try environment.reader.query(
                FeedSQL.storeCursor,
                [
                    configuration.node, system, place.cursor.text, recovery.text,
                    state.position.timeline.map(String.init),
                ])
        } catch let error as PostgresError where error.kind == .server {
            return try wasRefused(error)
        }
        if isRefused { environment.logger.notice("The hub's place in the feed is stored again.") }
        isRefused = false
        storeAt = .now + Self.interval
        let (insertedAt, flushedTo) = (row.integer(0, 0) ?? .max, row.integer(0, 1) ?? 0)
        state.recovery.use { $0.stored = recovery }
        state.position.stored(place, isNewest: isNewest, insertedAt: insertedAt, flushedTo: flushedTo)
        try epochs.renew(insertedAt: insertedAt, flushedTo: flushedTo)
    }

    /// Asks what clients still need, about once a second, and has it stored where it moved. Part of a poll, so that an idle
    /// hub does not wake up for it.
    func followRecovery(now: ContinuousClock.Instant) {
        guard now >= followAt else { return }
        followAt = now + .seconds(1)
        let (state, consumer) = (environment.state, environment.consumer)
        let (needed, stored) = state.recovery.use {
            $0.follow(oldest: consumer.oldestMark, now: now)
            return ($0.needed, $0.stored)
        }
        if (needed ?? state.position.cursor) != stored {
            state.position.isUnstored = true
        }
    }

    /// The hub stops: the last cursor is stored. What is not settled comes again when it starts, to clients as well; so it is
    /// given a moment.
    func finish() throws {
        followAt = .now
        followRecovery(now: .now)
        let end = ContinuousClock.now + .seconds(1)
        let consumer = environment.consumer
        while consumer.observed.settled < consumer.observed.taken, ContinuousClock.now < end { usleep(2000) }
        if environment.state.position.isUnstored { try store() }
    }

    /// As where the disk is full. Changes are handed on all the same: the price is that a hub that is started anew
    /// repeats more.
    ///
    /// - Throws: where there is none at all: the next process would take it that nobody was served before, and bring nobody
    ///   what it missed.
    private func wasRefused(_ error: PostgresError) throws {
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
