import Hub
import Logging
import Matching
import Postgres

/// Reads members' missed changes and has them sent, between two windows of the feed: *slices* on the feed's own session,
/// *scans* on sessions beside it. `RecoveryScheduler` decides which one serves a member.
///
/// One for each connection of the feed, on its thread.
final class RecoveryReader {
    /// The feed's position while it reads for members.
    struct Present {
        let cursor: FeedCursor
        let catalog: Catalog
        /// See `KnownTables.since`.
        let tablesSince: Snapshot?
    }

    /// Limit of rows that a slice examines: about as many milliseconds' worth as a window may take.
    static let sliceRows = 2000
    private static let sliceBytes = 262_144
    /// Time for which scans are served at once.
    private static let scanTime = Duration.milliseconds(10)
    /// Largest distance, in transactions, for the second scan: members that lack a day must not stop those that lack a
    /// minute.
    private static let shortDistance: UInt64 = 100_000
    /// Time that a scan's session is kept for the next scan.
    private static let scanRest = Duration.seconds(10)

    private let reader: PostgresConnection
    private let conninfo: String
    private let statementLimit: Duration
    private let form: OutboxForm
    private let logger: Logger
    private let countReading: () -> Void
    /// The scans beside the windows, for members that missed much.
    private var scans: [(scan: RecoveryScan, state: RecoveryScan.State)] = []
    /// The last scan's session, so that the next scan may begin at once.
    private var scanSession: (connection: PostgresConnection, until: ContinuousClock.Instant)?

    init(
        reader: PostgresConnection, conninfo: String, statementLimit: Duration, form: OutboxForm,
        logger: Logger, countReading: @escaping () -> Void
    ) {
        self.reader = reader
        self.conninfo = conninfo
        self.statementLimit = statementLimit
        self.form = form
        self.logger = logger
        self.countReading = countReading
    }

    /// Ends all scans, because no member is recovering any more.
    func endScans() { scans = [] }

    /// Reads for waiting members, for as long as a window may wait.
    ///
    /// - Returns: true if there is more to do at once.
    func serveScheduler(_ scheduler: RecoveryScheduler, at present: Present) throws -> Bool {
        try serveSlice(scheduler, present)
        try serveScans(scheduler, present)
        return scheduler.hasNear || isScanReady || scheduler.hasFar && scans.isEmpty
    }

    /// The sockets of scans that wait for Postgres.
    var descriptors: [Int32] { scans.compactMap(\.scan.descriptor) }

    /// When a scan must be checked, even if nothing arrives.
    var dueAt: ContinuousClock.Instant? {
        scans.compactMap { if case .waiting(let until) = $0.state { until } else { nil } }.min()
    }

    /// Closes the session kept for the next scan once it has been idle for long.
    func closeRestingSession(at now: ContinuousClock.Instant) {
        if let until = scanSession?.until, until < now { scanSession = nil }
    }

    // MARK: Slices

    /// Reads the rest for all waiting members, if it is little, and brings them up to date: nothing is read live before
    /// they have been told that changes come live.
    private func serveSlice(_ scheduler: RecoveryScheduler, _ present: Present) throws {
        guard scheduler.hasNear else { return }
        let members = scheduler.takeNear()
        guard !members.isEmpty else { return }
        let upper = present.cursor.window
        // If windows bring more than a slice, slices must grow, or no member would ever catch up.
        let growth = min(4, members.map(\.overflows).min() ?? 0)
        let limit = Self.sliceRows << growth
        let starts = members.compactMap(\.start)
        var rows: [RecoveredRow] = []
        var (wanted, count) = (0, 0)
        if starts.contains(where: { !upper.precedes($0.seen) }) {
            var taker = RecoveredRowReader(catalog: present.catalog)
            let statement = RecoveryStatement.text(
                starts: starts, upTo: upper, of: prefilter(scheduler, members, present),
                form, .limit(limit + 1, bytes: Self.sliceBytes << growth))
            countReading()
            try reader.streamRows(statement, within: statementLimit) { row in
                wanted = row.integer(0, 13).map { Int($0) } ?? 0
                count = row.integer(0, 14).map { Int($0) } ?? .max
                if row.flag(0, 12) { rows.append(try taker.readRow(row)) }
                return count <= limit
            }
        }
        // Changes that existed when they began may have been deleted since.
        if let pruned = try FeedHistory.prunedSnapshot(on: reader) {
            scheduler.changesAreGone(upTo: pruned, for: members)
        }
        guard count <= limit, rows.count == wanted else { return scheduler.handleOverflow(members) }
        rows.sort { $0.id < $1.id }
        let served = Dictionary(members.map { ($0.key, $0) }, uniquingKeysWith: { $1 })
        for start in stride(from: 0, to: rows.count, by: RecoveryScan.batchRows) {
            let end = min(start + RecoveryScan.batchRows, rows.count)
            try scheduler.sendRows(rows[start..<end], to: served, of: upper)
        }
        scheduler.finishMembers(members, at: present.cursor)
    }

    /// The rows that can concern the members; nil if tables have changed since one of them was last sent something: older
    /// rows may spell the values that a filter matches differently than today's columns do.
    private func prefilter(
        _ scheduler: RecoveryScheduler, _ members: [RecoveryMember], _ present: Present
    ) -> RowPrefilter? {
        guard let since = present.tablesSince,
            members.allSatisfy({ $0.start.map { since.precedes($0.seen) } ?? true })
        else { return nil }
        return scheduler.prefilter(for: members)
    }

    // MARK: Scans

    private var isScanReady: Bool {
        scans.contains { if case .ready = $0.state { true } else { false } }
    }

    private func serveScans(_ scheduler: RecoveryScheduler, _ present: Present) throws {
        try beginScan(scheduler, present)
        for index in scans.indices.reversed() {
            let scan = scans[index].scan
            do {
                scans[index].state = try scan.serveScheduler(scheduler, present.catalog, for: Self.scanTime)
            } catch .judging(let error) {
                throw error
            } catch .reading(let error) {
                logger.warning("Missed changes could not be read, so clients are asked to join again: \(error)")
                scheduler.failMembers(scan.members)
                scans[index].state = .ended
            }
            if case .ended = scans[index].state {
                scanSession = scan.session.map { ($0, .now + Self.scanRest) } ?? scanSession
                scans.remove(at: index)
            }
        }
    }

    /// Starts one scan for all, and a second one for members that lack little, while the first runs.
    private func beginScan(_ scheduler: RecoveryScheduler, _ present: Present) throws {
        guard scheduler.hasFar, scans.count < 2 else { return }
        let upper = present.cursor.window
        let members = scheduler.takeFar(within: scans.isEmpty ? .max : Self.shortDistance, of: upper)
        guard !members.isEmpty else { return }
        countReading()
        do {
            let connection = try openScanSession()
            let scan = try RecoveryScan(
                members, upTo: upper, of: prefilter(scheduler, members, present), form,
                on: connection, within: .seconds(60))
            scans.append((scan, .ready))
            // They may have waited long, and their changes may have been pruned meanwhile; they are told when they join
            // again.
            if let pruned = try FeedHistory.prunedSnapshot(on: reader) {
                scheduler.changesAreGone(upTo: pruned, for: members)
            }
        } catch {
            logger.warning("Missed changes cannot be read, so clients are asked to join again: \(error)")
            scheduler.failMembers(members)
        }
    }

    private func openScanSession() throws -> PostgresConnection {
        let kept = scanSession?.connection
        scanSession = nil
        // Postgres may have ended it while it was idle.
        if let kept, kept.isSilent { return kept }
        let connection = try PostgresConnection(
            ConnectionOptions(conninfo: conninfo), waiter: reader.waiter, logger: logger)
        try connection.runScript(FeedSQL.sessionOfFeed)
        try AbandonedStatements.shared.demandFew(on: connection)
        return connection
    }
}
