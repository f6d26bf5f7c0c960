import Glibc
import Hub
import Logging
import Matching
import Postgres

/// One connected life of the feed: session A reads and listens, session B waits for the doorbell's lock.
final class FeedSession {
    let loop: FeedLoop
    let reader: PostgresConnection
    let bell: DoorbellSession
    var doorbell: Doorbell
    let sockets: FeedSockets
    let hasCommitTimestamps: Bool
    let doorbellNumber: String
    var claim: NodeClaim
    var storeAt: ContinuousClock.Instant
    var isCursorRefused = false
    /// Names the time since the server was started or crashed; nil where it takes no writes.
    var run: String?
    var pruneAt: ContinuousClock.Instant
    var pruner = Pruner()
    var pruneRound = PruneReport()
    /// When a window is to bring the catalog's version along. What is revoked counts within this time, so well within a
    /// second.
    var versionAt: ContinuousClock.Instant
    static let versionInterval = Duration.milliseconds(500)
    /// When a window is to bring along what tells whether changes went. The catalog is read anew in between, also because the
    /// outbox was emptied, so this has a time of its own.
    var lookAt: ContinuousClock.Instant
    /// What is read beside the windows for members who missed much.
    var scans: [(scan: RecoveryScan, state: RecoveryScan.State)] = []
    /// What the last of them was read on: the next may begin at once.
    var scanSession: (connection: PostgresConnection, until: ContinuousClock.Instant)?
    /// When members who have just come are seen to: many come at once, and one look serves them all.
    var newcomersAt: ContinuousClock.Instant
    /// When clients' needs are looked at again.
    var recoveryAt: ContinuousClock.Instant
    /// Tables of this poll's changes that the catalog was read anew for, as it described them before.
    private var settled: [UInt32: Table?] = [:]
    private var refreshes = 0

    /// Connects, finds the place to go on from, and listens.
    init(loop: FeedLoop) throws {
        self.loop = loop
        let configuration = loop.configuration
        sockets = FeedSockets(inbox: loop.inbox)
        sockets.onWake = { [unowned loop] in loop.serveAnytimeWork() }
        let options = try ConnectionOptions(conninfo: configuration.conninfo)
        reader = try PostgresConnection(options, waiter: sockets, logger: loop.logger)
        try reader.run(SQL.sessionOfFeed)
        try Primary.demand(on: reader)
        try Migrator.demandCurrentSchema(on: reader)
        // Before anything is read: what commits from here on rings here.
        try reader.run("listen roost")
        var position = try FeedPosition(
            of: configuration.node, knowing: loop.progress.epochs.known, on: reader)
        let restore = position.restore
        if let restore {
            try reader.run(Self.newIncarnation(behind: restore))
            position = try FeedPosition(of: configuration.node, knowing: loop.progress.epochs.known, on: reader)
        }
        hasCommitTimestamps = position.hasCommitTimestamps
        doorbellNumber = position.doorbell
        _ = try reader.query(SQL.claimNode, [position.doorbell])
        bell = DoorbellSession(
            try PostgresConnection(options, waiter: sockets, logger: loop.logger), doorbell: position.doorbell)
        let now = ContinuousClock.now
        var rhythm = configuration.rhythm
        rhythm.areWritersSilent = try reader.query("show max_prepared_transactions").text(0, 0) != "0"
        doorbell = Doorbell(rhythm: rhythm, at: now)
        storeAt = now
        pruneAt = now + configuration.pruneInterval
        versionAt = now
        lookAt = now
        newcomersAt = now
        recoveryAt = now
        claim = NodeClaim(at: now)
        sockets.bell = bell
        loop.progress.statistics.connections += 1
        loop.progress.readers.insert(reader.backendID)
        loop.progress.adopt(position, isRestored: restore != nil, logger: loop.logger)
        try findRestart(position)
        try deleteForeignChanges()
        try beginEpoch(position)
        let catalog = try CatalogReader.read(from: reader, roles: loop.progress.roles)
        loop.adopt(catalog.keeping(loop.progress.catalog))
        // They may have been altered and altered back.
        loop.progress.tablesSince = nil
        // A cursor that came from the table is there already; to store it again would claim that it covers all that was
        // handed on since.
        if position.stored == nil { try storeCursor() }
    }

    func serve() throws {
        loop.progress.backoff.connected(at: .now)
        loop.consumer.feedDidBecomeReady(loop.progress.catalog)
        loop.report(.ready)
        while !loop.inbox.isStopping {
            try serveBell()
            loop.serveAnytimeWork()
            try serveIdleWork()
            let isRecovering = try serveRecoveries()
            // A ring that came with the answer to any statement is not on the socket any more.
            try serveRings()
            let now = ContinuousClock.now
            if now >= doorbell.pollAt {
                try poll()
            } else if loop.progress.isUnstored, now >= storeAt {
                try storeCursor()
            } else if now >= claim.lookAt {
                try lookForRivals()
            } else if now >= pruneAt {
                try prune()
            } else if !isRecovering {
                try rest(from: now)
            }
        }
        recoveryAt = .now
        followRecovery(now: .now)
        waitUntilSettled()
        if loop.progress.isUnstored { try storeCursor() }
        loop.publishStatistics()
    }

    func poll() throws {
        let began = ContinuousClock.now
        if doorbell.mode == .asleep { try bell.check(beside: reader) }
        doorbell.pollBegan()
        let before = loop.progress.statistics.changes
        settled = [:]
        refreshes = 0
        while let obstacle = try readWindow() {
            if case .table(let puzzling) = obstacle, settled[puzzling] == nil {
                settled.updateValue(loop.progress.catalog.table(puzzling), forKey: puzzling)
            }
            refreshes += 1
            try refreshCatalog()
        }
        let rows = loop.progress.statistics.changes - before
        try loop.consumer.pollEnded()
        loop.progress.statistics.polls += 1
        loop.published.levelAt = began
        try serveRings()
        let wasDozing = doorbell.mode == .dozing
        try perform(doorbell.pollEnded(rows: rows, at: .now))
        if wasDozing, doorbell.mode == .asleep { loop.progress.statistics.dozes += 1 }
        loop.progress.statistics.missedRings = max(loop.progress.statistics.missedRings, doorbell.missedRings)
        followRecovery(now: .now)
        if let until = scanSession?.until, until < .now { scanSession = nil }
        loop.publishStatistics()
    }

    /// - Returns: nil when the window is done; else why the catalog has to be read anew first.
    private func readWindow() throws -> WindowReader.Obstacle? {
        guard let cursor = loop.progress.cursor, let epoch = loop.progress.epoch else { return nil }
        let window = WindowReader(
            consumer: loop.consumer, catalog: loop.progress.catalog, settled: settled, mayAskAgain: refreshes < 5,
            skip: loop.progress.skip, after: FeedCursor(epoch: epoch, at: cursor)
        ) { [unowned loop] in loop.serveAnytimeWork() }
        defer {
            // Also where the connection broke: what was handed on must not come again.
            for key in window.handed { loop.progress.handed.handed(key) }
            loop.progress.statistics.changes += window.handed.count
            if !window.handed.isEmpty { loop.progress.marks.handedOn(window.handed.count) }
            if window.isComplete {
                loop.progress.statistics.orphans += window.orphans.values.reduce(0, +)
            } else {
                loop.progress.skip = loop.progress.handed.toSkip()
            }
        }
        let began = ContinuousClock.now
        let (isVersionDue, isLookDue) = (began >= versionAt, began >= lookAt)
        let statement = cursor.window(
            commitTimestamps: hasCommitTimestamps, isVersionDue: isVersionDue, isLookDue: isLookDue,
            members: loop.progress.catalog.memberTables)
        try reader.stream(statement, within: loop.configuration.statementLimit) { try window.take($0) }
        guard let next = try window.finish() else { return window.obstacle }
        if isVersionDue { versionAt = .now + Self.versionInterval }
        if !window.orphans.isEmpty {
            // Only a catalog younger than the window can say that a table is gone: it may have been watched again.
            try refreshCatalog()
            if let back = window.orphans.keys.first(where: { loop.progress.catalog.table($0) != nil }) {
                window.reopen()
                return .table(back)
            }
        }
        if isLookDue { lookAt = .now + Self.versionInterval }
        try lookForLosses(window, from: cursor, to: next)
        if window.undelivered > 0 {
            loop.logger.warning(
                """
                \(window.undelivered) rows of realtime.messages were not delivered: they have no topic, or a payload of \
                more than 3,000,000 bytes.
                """)
        }
        loop.progress.cursor = next
        if loop.progress.tablesSince == nil { loop.progress.tablesSince = next }
        loop.progress.skip = []
        loop.progress.handed.windowCompleted()
        if !window.handed.isEmpty {
            loop.progress.isUnstored = true
            loop.progress.settling.reached(
                StorablePlaces.Place(cursor: next, covered: loop.progress.handed.covered), taken: loop.consumer.observed.taken)
        }
        if let mark = loop.progress.marks.windowEnded(at: next, oldest: loop.progress.oldestMark, now: .now) {
            loop.consumer.marked(mark)
        }
        return nil
    }
}
