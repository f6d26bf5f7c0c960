import Logging
import Postgres

/// Keeps the feed to the history of its database (Migration010Epochs.sql).
extension FeedSession {
    /// - Parameter restore: what was there when the dump had been restored.
    static func newIncarnation(behind restore: Snapshot) -> String {
        SQLTemplate(withoutComments: SQL.newIncarnation).filled(["base": restore.text])
    }

    /// Writes the epoch of this connection, and waits until a crash of the server does not forget it.
    ///
    /// A database without room takes no writes; cursors then are tagged with what it does not know, so that whoever comes
    /// with one after the next reconnect is told to load the data again.
    func beginEpoch(_ position: FeedPosition) throws {
        let epoch = DatabaseEpoch.random()
        loop.progress.epoch = epoch
        do {
            run = try reader.query(SQL.serverRun, [String(Int64.random(in: 1...Int64.max))]).text(0, 0)
            _ = try reader.query(SQL.mendEpoch)
            try reader.run("begin; set local synchronous_commit = local")
            try write(epoch, seam: loop.progress.cursor)
            try reader.run("commit")
            loop.progress.epochs.connected(with: epoch, at: .now)
        } catch let error as PostgresError where error.kind == .server {
            try reader.run("rollback")
            loop.progress.epochs.failed(at: .now)
            warnOfEpoch(error)
        }
    }

    /// A cursor was stored; now and then this is the moment for another epoch.
    func renewEpoch(insertedAt: Int64, flushedTo: Int64) throws {
        if let epoch = loop.progress.epochs.proven(insertedAt: insertedAt, flushedTo: flushedTo) {
            loop.progress.epoch = epoch
        }
        guard loop.progress.epochs.isDue(at: .now) else { return }
        let epoch = DatabaseEpoch.random()
        do {
            try write(epoch, seam: nil)
            loop.progress.epochs.wrote(epoch, at: .now)
        } catch let error as PostgresError where error.kind == .server {
            loop.progress.epochs.failed(at: .now)
            warnOfEpoch(error)
        }
    }

    private func write(_ epoch: DatabaseEpoch, seam: Snapshot?) throws {
        _ = try reader.query(
            SQL.makeEpoch,
            [
                String(epoch.value), loop.configuration.node, run, loop.progress.timeline.map(String.init), seam?.text,
            ])
    }

    private func warnOfEpoch(_ error: PostgresError) {
        loop.logger.warning(
            """
            Postgres does not take a tag for clients' cursors, so those that come back with one after a restart may have to \
            load their data again: \(error.message)
            """)
    }

    /// What the database knows of the epochs of some cursors.
    func knownEpochs(of epochs: Set<DatabaseEpoch>) throws -> [DatabaseEpoch: KnownEpoch] {
        guard !epochs.isEmpty, let system = loop.progress.systemIdentifier, let timeline = loop.progress.timeline else {
            return [:]
        }
        let old = DatabaseEpoch(systemIdentifier: system, timeline: timeline)
        let asked = epochs.map { $0 == old ? 0 : $0.value }
        let rows = try reader.query(
            SQL.epochs,
            [
                "{" + asked.map(String.init).joined(separator: ",") + "}", run, loop.configuration.node,
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

    /// Deletes changes whose transactions have yet to happen. Once at each connect, and whenever old ones are deleted.
    func deleteForeignChanges() throws {
        do {
            let count = try reader.query(SQL.foreignChanges).affectedRows
            guard count > 0 else { return }
            loop.logger.warning(
                """
                \(count) changes of another database were in the outbox, as a restore brings them, and were deleted: \
                nobody was told of them.
                """)
        } catch let error as PostgresError where error.kind == .server {
            loop.logger.warning("Changes of another database may be in the outbox: \(error.message)")
        }
    }
}
