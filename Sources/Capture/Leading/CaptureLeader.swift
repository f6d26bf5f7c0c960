import Postgres
import Workers

/// Reads the stream and stores it, for as long as this hub leads. On the capture's thread.
final class CaptureLeader {
    private let stream: CaptureStream
    private let store: CaptureStore
    private let slot: CaptureSlot
    private let sockets: CaptureSockets
    private let published: Published<CaptureReport>
    /// Losses of the sessions before this one, and this one's progress.
    private(set) var trials: BatchTrials<CapturePosition>
    private var pacing = StorePacing(at: .now)
    private var heartbeatAt = ContinuousClock.now
    private var beats = 0
    private var noting = LevelNoting()
    /// No table is left to read: once all up to here is stored, the slot is dropped.
    private var lastPlace: LSN?

    /// More often than `WALCapture.Setup.silence`.
    private static let heartbeat = Duration.seconds(2)

    init(
        stream: CaptureStream, store: CaptureStore, slot: CaptureSlot, sockets: CaptureSockets,
        published: Published<CaptureReport>, trials: BatchTrials<CapturePosition>
    ) {
        self.trials = trials
        self.stream = stream
        self.store = store
        self.slot = slot
        self.sockets = sockets
        self.published = published
        sockets.tick = { [unowned self] in try self.stream.acknowledge() }
    }

    deinit { sockets.tick = {} }

    func serve(isStopping: () -> Bool) throws {
        try note(stream.mayAcknowledge)
        while !isStopping() {
            stream.mostRows = trials.mostRows
            let hasMore = try stream.read { pacing.dueAt.map { $0 <= .now } ?? false }
            let now = ContinuousClock.now
            if !stream.batch.isEmpty {
                pacing.rowsCame(at: now)
                if published.waitingSince == nil { published.waitingSince = now }
            }
            let isDue = stream.isFull || pacing.dueAt.map { $0 <= now } ?? false
            if isDue, stream.isAtBoundary { try storeBatch() }
            if let level = stream.level,
                noting.dueAt(level, after: stream.mayAcknowledge, atOnce: lastPlace != nil) <= .now
            {
                try note(level)
            }
            if stream.acknowledgementDue <= .now { try stream.acknowledge() }
            if heartbeatAt <= .now { try beat() }
            if let lastPlace, stream.acknowledgedUpTo >= lastPlace { break }
            if !hasMore { rest() }
        }
        guard lastPlace != nil else { return }
        // The stream's session ends with it, and lets go of the slot.
        try stream.connection.endStream()
        try slot.dropIfUnused()
    }

    private func storeBatch() throws {
        let batch = stream.batch
        let outcome: CaptureStore.Outcome
        do {
            outcome = try store.store(batch, upTo: stream.position, care: trials.isHopeless ? .bare : .full)
        } catch let error as PostgresError where error.kind == .connection {
            trials.sessionEnded(at: store.position, rows: batch.rows)
            throw error
        }
        trials.done(rows: batch.rows)
        stream.mayAcknowledge = max(stream.mayAcknowledge, store.position.lsn)
        published.waitingSince = nil
        published.rows += batch.rows
        published.rowsAsTexts += outcome.asTexts
        published.rowsLost += outcome.lost
        published.transactions += batch.transactions
        published.batches += 1
        pacing.stored(rows: batch.rows, at: .now)
        batch.removeAll()
        heartbeatAt = max(heartbeatAt, .now)
    }

    /// Writes down that nothing is to be stored up to there, after which the slot may be told.
    private func note(_ level: LSN) throws {
        _ = try store.connection.query(CaptureSQL.noteLevel, [level.description])
        stream.mayAcknowledge = max(stream.mayAcknowledge, level)
        noting.notedAt = .now
    }

    /// Shows other hubs that this one lives, and looks how much WAL the slot keeps.
    private func beat() throws {
        heartbeatAt = .now + Self.heartbeat
        beats += 1
        // The first comes before anything is read: what ended the last session may be read again.
        if beats > 2, stream.batch.isEmpty { published.waitingSince = nil }
        _ = try store.connection.query(CaptureSQL.settleCaptures)
        let row = try store.connection.query(CaptureSQL.heartbeat)
        published.keptBytes = row.count > 0 ? row.integer(0, 0) : nil
        published.lagBytes = row.count > 0 ? row.integer(0, 1) : nil
        let tables = row.count > 0 ? Int(row.integer(0, 2) ?? 0) : 0
        published.publishedTables = tables
        if tables > 0 {
            lastPlace = nil
        } else if lastPlace == nil {
            lastPlace = try store.connection.query("select pg_current_wal_lsn()").text(0, 0).flatMap { LSN($0) }
        }
    }

    private func rest() {
        var due = min(stream.acknowledgementDue, heartbeatAt)
        if let store = pacing.dueAt, stream.isAtBoundary { due = min(due, store) }
        if let level = stream.level {
            due = min(due, noting.dueAt(level, after: stream.mayAcknowledge, atOnce: lastPlace != nil))
        }
        sockets.rest(watching: [stream.connection.descriptor, store.connection.descriptor], until: due)
    }
}

/// When it is written down how far there is nothing to store: each time is a commit, which is WAL itself.
struct LevelNoting {
    var notedAt = ContinuousClock.now

    /// What a note of its own is, and somebody's vacuum, may wait for longer.
    private static let little: UInt64 = 1024
    private static let (often, seldom) = (Duration.milliseconds(500), Duration.seconds(2))

    func dueAt(_ level: LSN, after known: LSN, atOnce: Bool) -> ContinuousClock.Instant {
        if atOnce { return notedAt }
        return notedAt + (level.rawValue - known.rawValue > Self.little ? Self.often : Self.seldom)
    }
}
