import Postgres
import Workers

/// Reads the stream and stores its changes while this hub leads. On the capture's thread.
final class CaptureLeader {
    private let stream: CaptureStream
    private let store: CaptureStore
    private let slot: CaptureSlot
    private let sockets: CaptureSockets
    private let published: Published<CaptureReport>
    /// Failures of earlier sessions, and the progress of this one.
    private(set) var trials: BatchTrials<CapturePosition>
    /// Batches that the server refused to store, whatever the reason it gives.
    private(set) var refusals: RepeatedRefusal<CapturePosition>
    private var pacing = StorePacing(at: .now)
    private var heartbeatAt = ContinuousClock.now
    private var beats = 0
    /// Set when no table is left to read: the slot is dropped once everything up to this place is stored.
    private var lastPlace: LSN?

    /// Shorter than `WALCapture.Setup.silence`.
    private static let heartbeat = Duration.seconds(2)

    init(
        stream: CaptureStream, store: CaptureStore, slot: CaptureSlot, sockets: CaptureSockets,
        published: Published<CaptureReport>, trials: BatchTrials<CapturePosition>,
        refusals: RepeatedRefusal<CapturePosition>
    ) {
        self.trials = trials
        self.refusals = refusals
        self.stream = stream
        self.store = store
        self.slot = slot
        self.sockets = sockets
        self.published = published
        sockets.tick = { [unowned self] in try self.stream.acknowledge(stored: self.store.position.lsn) }
    }

    deinit { sockets.tick = {} }

    func readAndStore(isStopping: () -> Bool) throws {
        while !isStopping() {
            stream.mostRows = trials.mostRows
            let hasMore = try readStream()
            let now = ContinuousClock.now
            if !stream.batch.isEmpty {
                pacing.rowsCame(at: now)
                if published.waitingSince == nil { published.waitingSince = now }
            }
            let isDue = stream.isFull || pacing.dueAt.map { $0 <= now } ?? false
            if isDue, stream.isAtBoundary { try storeBatch() }
            if stream.acknowledgementDue <= .now { try stream.acknowledge(stored: store.position.lsn) }
            if heartbeatAt <= .now { try sendHeartbeat() }
            if let lastPlace, stream.acknowledgedUpTo >= lastPlace { break }
            if !hasMore { waitForWork() }
        }
        guard lastPlace != nil else { return }
        // The walsender's session ends with the stream, and releases the slot.
        try stream.connection.endStream()
        try slot.dropIfUnused()
    }

    private func readStream() throws -> Bool {
        do {
            return try stream.readMessages { pacing.dueAt.map { $0 <= .now } ?? false }
        } catch let error as PostgresError where error.kind == .server {
            // Earlier transactions are stored first, so that the refused one is next in the slot.
            if !stream.batch.isEmpty { try storeBatch() }
            throw DecodingRefusal(error: error, commit: stream.commit, position: store.position)
        }
    }

    private func storeBatch() throws {
        let batch = stream.batch
        let outcome: CaptureStore.Outcome
        do {
            outcome = try store.store(
                batch, upTo: stream.position, care: trials.isHopeless ? .bare : .full,
                blamesRows: refusals.isLasting(at: .now))
        } catch let error as PostgresError {
            if error.kind != .server {
                trials.batchFailed(at: store.position, rows: batch.rows, at: .now)
            } else if !error.isOfAnotherLeader {
                refusals.requestRefused(at: store.position, at: .now)
            }
            throw error
        }
        trials.batchSucceeded(rows: batch.rows)
        refusals.requestPassed()
        published.waitingSince = nil
        published.rows += batch.rows
        published.rowsAsTexts += outcome.asTexts
        published.rowsLost += outcome.lost
        published.transactions += batch.transactions
        published.batches += 1
        pacing.noteStored(rows: batch.rows, at: .now)
        batch.removeAll()
        heartbeatAt = max(heartbeatAt, .now)
    }

    /// Shows other hubs that this one is alive, and measures the WAL that the slot retains.
    private func sendHeartbeat() throws {
        heartbeatAt = .now + Self.heartbeat
        beats += 1
        // The first heartbeat precedes any reading: the change that ended the last session may come again.
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

    private func waitForWork() {
        var due = min(stream.acknowledgementDue, heartbeatAt)
        if let store = pacing.dueAt, stream.isAtBoundary { due = min(due, store) }
        sockets.waitForInput(watching: [stream.connection.descriptor, store.connection.descriptor], until: due)
    }
}
