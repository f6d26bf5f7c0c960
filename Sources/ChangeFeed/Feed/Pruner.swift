import Logging
import Postgres

/// Deletes changes older than the retention, in batches small enough not to delay windows.
///
/// After a long outage there may be millions of rows to delete: batches then follow one another in such a way that they
/// take a fifth of the time and leave four fifths to the feed.
struct Pruner {
    /// The primary key of the last row that the last batch examined; every pass starts from the beginning.
    private var place = Self.beginning
    private var isInOutbox = true
    private var hasWarnedOfQueue = false
    private static let beginning = (xid: "0", id: "0")
    private static let outboxBatch = 1000
    private static let messagesBatch = 5000

    /// - Parameter retention: in whole seconds.
    /// - Returns: the number of changes deleted, and the pause before the next batch; nil when the pass is over.
    /// - Throws: `PostgresError`; the next batch starts another pass.
    mutating func deleteBatch(
        on connection: PostgresConnection, retention: String, logger: Logger
    ) throws -> (changes: Int, pause: Duration?) {
        let start = ContinuousClock.now
        var deleted = 0
        do {
            if isInOutbox {
                deleted = try deleteChanges(on: connection, retention, logger)
            } else {
                let messages = try connection.query("select roost.prune_messages($1)", [retention])
                isInOutbox = messages.integer(0, 0) ?? 0 < Self.messagesBatch
                if isInOutbox { return (0, nil) }
            }
        } catch {
            (place, isInOutbox) = (Self.beginning, true)
            throw error
        }
        return (deleted, (ContinuousClock.now - start) * 4)
    }

    private mutating func deleteChanges(
        on connection: PostgresConnection, _ retention: String, _ logger: Logger
    ) throws -> Int {
        let row = try connection.query(FeedSQL.prune, [retention, place.xid, place.id])
        let seen = row.integer(0, 0) ?? 0
        let deleted = Int(row.integer(0, 1) ?? 0)
        if place == Self.beginning { warn(ofQueue: row.text(0, 4).flatMap { Double($0) } ?? 0, logger) }
        if deleted > 0, seen == Self.outboxBatch, let xid = row.text(0, 2), let id = row.text(0, 3) {
            place = (xid, id)
        } else {
            (place, isInOutbox) = (Self.beginning, false)
        }
        return deleted
    }

    private mutating func warn(ofQueue usage: Double, _ logger: Logger) {
        defer { hasWarnedOfQueue = usage > 0.5 }
        guard usage > 0.5, !hasWarnedOfQueue else { return }
        logger.warning(
            """
            Postgres' queue of notifications is \(Int(usage * 100)) % full, and commits that notify fail when it is \
            full; `roost doctor` names the session that holds it up.
            """)
    }
}

/// Log messages about a deletion pass that takes long, as after an outage. Pure.
package struct PruneReport {
    package typealias Instant = ContinuousClock.Instant

    private var began: Instant?
    private var deleted = 0
    private var sayAt: Instant?
    private var hasSpoken = false
    /// Interval between two messages, and before the first.
    private static let rhythm = Duration.seconds(10)

    package init() {}

    /// Counts a batch.
    ///
    /// - Parameters:
    ///   - count: number of changes that it deleted.
    ///   - isLast: true if the pass ends with this batch.
    /// - Returns: the message to log now.
    package mutating func addBatch(_ count: Int, isLast: Bool, at now: Instant) -> String? {
        let start = began ?? now
        began = start
        deleted += count
        let seconds = (now - start).components.seconds
        if isLast {
            defer { self = PruneReport() }
            return hasSpoken ? "Old changes are deleted: \(deleted), in \(seconds) s." : nil
        }
        guard now >= sayAt ?? start + Self.rhythm else { return nil }
        sayAt = now + Self.rhythm
        hasSpoken = true
        return "Old changes are being deleted: \(deleted) so far, in \(seconds) s."
    }
}

/// Deletes old changes and messages whenever it is due. One for each connection of the feed.
final class PruneSchedule {
    private let environment: FeedEnvironment
    private let epochs: EpochWriter
    private var pruner = Pruner()
    private var report = PruneReport()
    private(set) var dueAt: ContinuousClock.Instant

    init(_ environment: FeedEnvironment, epochs: EpochWriter, at now: ContinuousClock.Instant) {
        self.environment = environment
        self.epochs = epochs
        dueAt = now + environment.configuration.pruneInterval
    }

    /// Deletes one batch; after the last one, also changes left by another database, and epochs that no cursor carries any
    /// more.
    ///
    /// - Returns: the number of changes deleted.
    /// - Throws: `PostgresError` if the database is unreachable; a refused deletion is tried again after the usual
    ///   interval.
    func deleteBatch() throws -> Int {
        let (reader, configuration) = (environment.reader, environment.configuration)
        var deleted = 0
        do {
            let retention = String(configuration.retention.components.seconds)
            let batch = try pruner.deleteBatch(on: reader, retention: retention, logger: environment.logger)
            deleted = batch.changes
            if let news = report.addBatch(batch.changes, isLast: batch.pause == nil, at: .now) {
                environment.logger.info("\(news)")
            }
            dueAt = .now + (batch.pause ?? configuration.pruneInterval)
            if batch.pause == nil {
                try epochs.deleteForeignChanges()
                _ = try reader.query(EpochSQL.pruneEpochs, [retention])
            }
        } catch let error as PostgresError where error.kind == .server {
            environment.logger.warning(
                "Old changes or messages cannot be deleted, so their tables grow: \(error.message)")
            dueAt = .now + configuration.pruneInterval
        }
        return deleted
    }
}
