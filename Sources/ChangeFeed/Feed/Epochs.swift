import Logging
import Postgres

/// Ties the feed to the history of its database (SchemaRecovery.sql): writes the epochs that cursors are tagged with,
/// looks up the epochs of other cursors, and deletes changes left by another database.
///
/// One for each connection of the feed.
final class EpochWriter {
    private let environment: FeedEnvironment
    /// Identifies the period since the server started or crashed; nil if the server takes no writes.
    private var run: String?

    init(_ environment: FeedEnvironment) { self.environment = environment }

    /// The script that starts another history, for a database whose Roost tables came from a dump.
    ///
    /// - Parameter restore: the snapshot when the dump had been restored.
    static func newIncarnation(behind restore: Snapshot) -> String {
        SQLTemplate(withoutComments: EpochSQL.newIncarnation.text).filled(["base": restore.text])
    }

    /// Writes this connection's epoch, and waits until a crash of the server cannot lose it.
    ///
    /// A database without disk space takes no writes; cursors then carry a tag that the database does not know, so a client
    /// that presents one after the next reconnect is told to load its data again.
    func beginEpoch() throws {
        let (reader, state) = (environment.reader, environment.state)
        let epoch = DatabaseEpoch.random()
        state.epochs.startTagging(with: epoch)
        do {
            run = try reader.query(EpochSQL.serverRun, [String(Int64.random(in: 1...Int64.max))]).text(0, 0)
            _ = try reader.query(EpochSQL.mendEpoch)
            try reader.runScript("begin; set local synchronous_commit = local")
            try writeEpoch(epoch, seam: state.position.cursor)
            try reader.runScript("commit")
            state.epochs.connectionOpened(with: epoch, at: .now)
        } catch let error as PostgresError where error.kind == .server {
            try reader.runScript("rollback")
            handleRefusal(error)
        }
    }

    /// Called after each store of a cursor; writes another epoch when one is due.
    func renewEpoch(insertedAt: Int64, flushedTo: Int64) throws {
        environment.state.epochs.walAdvanced(insertedAt: insertedAt, flushedTo: flushedTo)
        guard environment.state.epochs.isDue(at: .now) else { return }
        let epoch = DatabaseEpoch.random()
        do {
            try writeEpoch(epoch, seam: nil)
            environment.state.epochs.epochWritten(epoch, at: .now)
        } catch let error as PostgresError where error.kind == .server {
            handleRefusal(error)
        }
    }

    private func writeEpoch(_ epoch: DatabaseEpoch, seam: Snapshot?) throws {
        let timeline = environment.state.position.timeline.map(String.init)
        _ = try environment.reader.query(
            EpochSQL.makeEpoch, [String(epoch.value), environment.configuration.node, run, timeline, seam?.text])
    }

    private func handleRefusal(_ error: PostgresError) {
        environment.state.epochs.writeFailed(at: .now)
        environment.logger.warning(
            """
            Postgres does not store a tag for clients' cursors, so clients that come back with a cursor after a \
            restart may have to load their data again: \(error.message)
            """)
    }

    /// Looks up the epochs of some cursors in the database.
    func knownEpochs(of epochs: Set<DatabaseEpoch>) throws -> [DatabaseEpoch: KnownEpoch] {
        let position = environment.state.position
        guard !epochs.isEmpty, let system = position.systemIdentifier, let timeline = position.timeline else {
            return [:]
        }
        let old = DatabaseEpoch(systemIdentifier: system, timeline: timeline)
        let asked = epochs.map { $0 == old ? 0 : $0.value }
        let rows = try environment.reader.query(
            EpochSQL.epochs,
            [
                "{" + asked.map(String.init).joined(separator: ",") + "}", run, environment.configuration.node,
                String(timeline),
            ])
        var known: [DatabaseEpoch: KnownEpoch] = [:]
        for row in 0..<rows.count {
            guard let value = rows.integer(row, 0).flatMap({ UInt32(exactly: $0) }) else { continue }
            let epoch = value == 0 ? old : DatabaseEpoch(value: value)
            if rows.flag(row, 1) {
                known[epoch] = .sameRun
            } else if let certain = rows.text(row, 2).flatMap({ Snapshot($0) }) {
                known[epoch] = .earlierRun(upTo: certain, sameTimeline: rows.flag(row, 3))
            }
        }
        return known
    }

    /// Deletes changes whose transactions are still in the future. Runs once at each connect, and whenever old ones are
    /// deleted.
    func deleteForeignChanges() throws {
        do {
            let count = try environment.reader.query(EpochSQL.foreignChanges).affectedRows
            guard count > 0 else { return }
            environment.logger.warning(
                """
                \(count) changes in the outbox came from another database, as after a restore; they were deleted and \
                not delivered.
                """)
        } catch let error as PostgresError where error.kind == .server {
            environment.logger.warning("Changes of another database may be in the outbox: \(error.message)")
        }
    }
}

/// The epochs that this process has written, and the time when another is due. Pure.
///
/// An epoch that a crash of the server can lose is useless, and a commit that waits for the disk delays changes. So between
/// two connects an epoch is written without waiting, and tags cursors only once the WAL is known to be flushed past it.
package struct EpochRenewal: Sendable {
    package typealias Instant = ContinuousClock.Instant

    /// The farthest that a cursor can lie past a restored state that still knows the cursor's epoch.
    package static let interval = Duration.seconds(5)
    /// Enough to distinguish a server that was put back from another one.
    private static let mostKept = 64

    /// The epoch that cursors are tagged with; nil until the database was first reached.
    package private(set) var current: DatabaseEpoch?
    /// The epochs written and safe, in the order of writing.
    package private(set) var known: [DatabaseEpoch] = []
    /// The epoch written but not known to be flushed, with a later place in the WAL once there is one.
    private var pending: (epoch: DatabaseEpoch, provenBy: Int64?)?
    private var dueAt: Instant?

    package init() {}

    /// Tags cursors with this epoch, even if the database does not take a row of it.
    package mutating func startTagging(with epoch: DatabaseEpoch) { current = epoch }

    /// The connection's row was written and is safe.
    package mutating func connectionOpened(with epoch: DatabaseEpoch, at now: Instant) {
        pending = nil
        addKnown(epoch)
        dueAt = now + Self.interval
    }

    /// A row could not be written.
    package mutating func writeFailed(at now: Instant) {
        pending = nil
        dueAt = now + Self.interval
    }

    package func isDue(at now: Instant) -> Bool { pending == nil && dueAt.map { $0 <= now } ?? true }

    /// A row was written between two connects.
    package mutating func epochWritten(_ epoch: DatabaseEpoch, at now: Instant) {
        pending = (epoch, nil)
        dueAt = now + Self.interval
    }

    /// - Parameters:
    ///   - insertedAt: a place in the WAL after everything written before.
    ///   - flushedTo: the place up to which the WAL was flushed then.
    /// - Returns: the new epoch for cursors, if it changes.
    @discardableResult
    package mutating func walAdvanced(insertedAt: Int64, flushedTo: Int64) -> DatabaseEpoch? {
        guard let (epoch, place) = pending else { return nil }
        guard let place else {
            pending = (epoch, insertedAt)
            return nil
        }
        guard place <= flushedTo else { return nil }
        pending = nil
        addKnown(epoch)
        current = epoch
        return epoch
    }

    private mutating func addKnown(_ epoch: DatabaseEpoch) {
        known.append(epoch)
        if known.count > Self.mostKept { known.removeFirst() }
    }
}
