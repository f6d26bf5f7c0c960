import Hub
import Logging
import Matching
import Postgres
import Schema

/// One connected life of the feed: session A reads and listens, session B waits for the doorbell's lock.
///
/// It connects, then serves whatever is due, one thing at a time: above all the next window, and between two windows posted
/// work, recovering members, the stored cursor, other hubs of the same name, and the deletion of old changes. Each of these
/// is a type with its own due time (`dueAt`).
final class FeedSession {
    private let loop: FeedLoop
    private let state: FeedState
    private let reader: PostgresConnection
    private let sockets: FeedSockets
    private let form: OutboxForm
    private var statements: WindowStatements
    private let doorbell: DoorbellController
    private let epochs: EpochWriter
    private let cursors: CursorStore
    private let catalog: CatalogWatch
    private let losses: LossDetector
    private let rivals: RivalWatch
    private let pruning: PruneSchedule
    private let recoveries: RecoveryReader
    /// When newly arrived members are served: many arrive at once, and one poll serves them all.
    private var newcomersAt: ContinuousClock.Instant
    /// Tables in this poll for which the catalog was already read again, with their previous description.
    private var settled: [UInt32: Table?] = [:]
    private var refreshes = 0
    /// True if a skipped table gained a subscriber during this poll.
    private var hasNewListener = false
    /// Limit of skipped tables named in a window's statement.
    private static let mostUnheard = 500

    /// Connects, finds the position to continue from, and listens.
    init(loop: FeedLoop) throws {
        self.loop = loop
        state = loop.state
        let (configuration, logger, consumer, state) = (loop.configuration, loop.logger, loop.consumer, loop.state)
        sockets = FeedSockets(inbox: loop.inbox)
        sockets.onWake = { [unowned loop] in loop.serveAnytimeWork() }
        let options = try ConnectionOptions(conninfo: configuration.conninfo)
        reader = try PostgresConnection(options, waiter: sockets, logger: logger)
        try reader.runScript(FeedSQL.sessionOfFeed)
        try Primary.demandPrimary(on: reader)
        try RoostSchema.demandCurrent(on: reader)
        if let complaint = try ServerClock.complaint(about: reader) { logger.warning("\(complaint)") }
        // Listen before anything is read, so that every later commit rings here.
        try reader.runScript("listen roost")
        var position = try ServerPosition(of: configuration.node, knowing: state.epochs.known, on: reader)
        let restore = position.restore
        if let restore {
            try reader.runScript(EpochWriter.newIncarnation(behind: restore))
            position = try ServerPosition(of: configuration.node, knowing: state.epochs.known, on: reader)
        }
        form = OutboxForm(
            keepsCommitTimes: position.hasCommitTimestamps, isUTF8: reader.serverEncoding == "UTF8")
        statements = WindowStatements(form)
        _ = try reader.query(FeedSQL.claimNode, [position.doorbell])
        let bell = DoorbellSession(
            try PostgresConnection(options, waiter: sockets, logger: logger), doorbell: position.doorbell)
        let now = ContinuousClock.now
        var rhythm = configuration.rhythm
        rhythm.areWritersSilent = try reader.query("show max_prepared_transactions").text(0, 0) != "0"
        doorbell = DoorbellController(Doorbell(rhythm: rhythm, at: now), reader: reader, session: bell)
        let environment = FeedEnvironment(
            configuration: configuration, logger: logger, consumer: consumer, state: state, reader: reader)
        epochs = EpochWriter(environment)
        cursors = CursorStore(environment, epochs: epochs, at: now)
        catalog = CatalogWatch(environment, at: now)
        losses = LossDetector(environment, at: now)
        rivals = RivalWatch(environment, doorbell: position.doorbell, at: now)
        pruning = PruneSchedule(environment, epochs: epochs, at: now)
        recoveries = RecoveryReader(
            reader: reader, conninfo: configuration.conninfo, statementLimit: configuration.statementLimit,
            form: form, logger: logger,
            countReading: { state.statistics.recoveryReads += 1 })
        newcomersAt = now
        sockets.bell = bell
        state.statistics.connections += 1
        state.readers.insert(reader.backendID)
        state.resumeFromServer(position, isRestored: restore != nil, logger: logger)
        try beginRecovery(storedAt: position.stored)
        try epochs.deleteForeignChanges()
        try epochs.beginEpoch()
        try catalog.loadCatalog()
        // A cursor that came from the table is stored already; storing it again would claim that it covers everything
        // handed on since.
        if position.stored == nil { try cursors.storeCursor() }
    }

    /// Determines the history that the feed is now on and, once per process, what the previous process left.
    private func beginRecovery(storedAt position: Snapshot?) throws {
        guard let cursor = state.position.cursor else { return }
        guard state.recovery.withPoints({ $0.restart }) == nil else {
            let isSameHistory = state.position.isSameHistory
            return state.recovery.withPoints {
                $0.connectionRestored(at: cursor, isSameHistory: isSameHistory, now: .now)
            }
        }
        let stored = try reader.query(RecoverySQL.recoveryStored, [loop.configuration.node])
        let left = stored.count > 0 ? stored.text(0, 0).flatMap { Snapshot($0) } : nil
        state.position.recordFound(storedCursor: left != nil)
        state.recovery.withPoints { $0.processStarted(after: left, storedAt: position, at: cursor, now: .now) }
        if left == nil { loop.consumer.foundNoEarlierHub() }
    }

    // MARK: Due work

    func serve() throws {
        state.retry.connectionOpened(at: .now)
        loop.consumer.feedDidBecomeReady(state.tables.catalog)
        loop.reportStatus(.ready)
        while !loop.inbox.isStopping {
            try doorbell.serveEvents()
            loop.serveAnytimeWork()
            try serveIdleWork()
            try serveWindowWaiters()
            let isRecovering = try serveRecoveries()
            // A notification that came with a statement's result is no longer on the socket.
            try takeRings()
            let now = ContinuousClock.now
            if now >= doorbell.pollAt {
                try pollOutbox()
            } else if let due = cursors.dueAt, now >= due {
                try cursors.storeCursor()
            } else if now >= rivals.dueAt {
                try rivals.findRivals()
            } else if now >= pruning.dueAt {
                try pruneBatch()
            } else if !isRecovering {
                waitUntilDue(from: now)
            }
        }
        try cursors.storeFinalCursor()
        loop.publishStatistics()
    }

    /// Sleeps until something arrives or is due.
    private func waitUntilDue(from now: ContinuousClock.Instant) {
        var due = min(doorbell.pollAt, pruning.dueAt, rivals.dueAt)
        if let cursor = cursors.dueAt { due = min(due, cursor) }
        if let scan = recoveries.dueAt { due = min(due, scan) }
        if loop.consumer.recoveries?.hasNewcomers == true { due = min(due, newcomersAt) }
        if let bell = doorbell.dueAt { due = min(due, bell) }
        sockets.others = recoveries.descriptors
        sockets.waitForAnything(watching: reader.descriptor, until: max(due, now + .milliseconds(1)))
    }

    private func takeRings() throws { state.statistics.rings += try doorbell.takeRings() }

    private func pruneBatch() throws {
        let deleted = try pruning.deleteBatch()
        state.statistics.pruned += deleted
        if deleted > 0 { loop.publishStatistics() }
    }

    /// Runs posted work that may query.
    private func serveIdleWork() throws {
        guard loop.inbox.hasIdleWork else { return }
        // Work that waits for its own query must not be interrupted by other work.
        sockets.servesInbox = false
        defer { sockets.servesInbox = true }
        for work in loop.inbox.takeIdleWork() {
            let ask: ((String, [String?]) throws -> [[String?]])? =
                reader.isBroken ? nil : { try self.queryTexts($0, $1) }
            work(
                FeedContext(catalog: state.tables.catalog, status: loop.published.status, ask: ask) { [self] in
                    try catalog.refreshCatalog(knowing: $0)
                    return state.tables.catalog
                })
        }
        if reader.isBroken { throw PostgresError(.connection, "The connection to Postgres broke during a query.") }
    }

    /// Reads a window for callers that wait for one begun after their request. Catalog changes before the request apply to
    /// it.
    private func serveWindowWaiters() throws {
        let waiters = loop.inbox.takeWindowWaiters()
        guard !waiters.isEmpty else { return }
        catalog.dueAt = .now
        losses.dueAt = .now
        do { try pollOutbox() } catch {
            for waiter in waiters { waiter(false) }
            throw error
        }
        for waiter in waiters { waiter(true) }
    }

    /// Queries rows as texts.
    private func queryTexts(_ sql: String, _ parameters: [String?] = []) throws -> [[String?]] {
        let rows = try reader.query(sql, parameters, within: loop.configuration.statementLimit)
        return (0..<rows.count).map { row in (0..<rows.width).map { rows.text(row, $0) } }
    }

    /// Queries without serving the inbox: a subscription that arrived meanwhile would enter the registry while it is being
    /// bound.
    private func queryAlone(_ sql: String) throws -> [[String?]] { try withoutInbox { try queryTexts(sql) } }

    /// Runs a question to Postgres without serving the inbox.
    private func withoutInbox<Answer>(_ question: () throws -> Answer) throws -> Answer {
        sockets.servesInbox = false
        defer { sockets.servesInbox = true }
        return try question()
    }

    // MARK: Recovery

    /// Brings members up to date between two windows.
    ///
    /// - Returns: true if there is more to do at once.
    private func serveRecoveries() throws -> Bool {
        guard let scheduler = loop.consumer.recoveries, !scheduler.isEmpty else {
            recoveries.endScans()
            return false
        }
        scheduler.bindPending(asking: { try self.queryAlone($0) })
        try receiveNewcomers(scheduler)
        guard let present = state.present else { return false }
        return try recoveries.serveScheduler(
            scheduler,
            at: RecoveryReader.Present(
                cursor: present, catalog: state.tables.catalog, tablesSince: state.tables.since))
    }

    private func receiveNewcomers(_ scheduler: RecoveryScheduler) throws {
        guard scheduler.hasNewcomers, ContinuousClock.now >= newcomersAt else { return }
        newcomersAt = .now + .milliseconds(5)
        // A cursor may come from another hub that is ahead of this one, and a policy may have changed while this one slept:
        // a poll that begins now settles both.
        catalog.dueAt = .now
        losses.dueAt = .now
        try pollOutbox()
        let pruned = try FeedHistory.prunedSnapshot(on: reader)
        guard let epoch = state.epochs.current, let present = state.position.cursor,
            case let (marks, left?, restored) = state.recovery.withPoints({ ($0.marks, $0.restart, $0.restored) })
        else { return }
        // The epoch of a newcomer that arrived after this question would be unknown, and its good cursor refused.
        let known = try withoutInbox { try epochs.knownEpochs(of: scheduler.epochsOfNewcomers.subtracting([epoch])) }
        scheduler.beginRecoveries(
            on: FeedHistory(
                epoch: epoch, epochs: known, present: present, marks: marks, restart: left, restored: restored,
                pruned: pruned),
            slicesOf: RecoveryReader.sliceRows, asking: { try self.queryAlone($0) })
    }

    // MARK: Windows

    /// Reads everything new; if the catalog turns out to be old, once more with a new one, and if a skipped table gained a
    /// subscriber, once more with all tables.
    private func pollOutbox() throws {
        let began = ContinuousClock.now
        try doorbell.pollBegins()
        let before = state.statistics.changes + state.statistics.passed
        settled = [:]
        refreshes = 0
        hasNewListener = false
        while let obstacle = try readWindow() {
            switch obstacle {
            case .listener:
                hasNewListener = true
                continue
            case .age:
                catalog.dueAt = .now
                continue
            case .table, .version: break
            }
            if case .table(let puzzling) = obstacle, settled[puzzling] == nil {
                settled.updateValue(state.tables.catalog.table(puzzling), forKey: puzzling)
            }
            refreshes += 1
            try catalog.refreshCatalog()
        }
        let rows = state.statistics.changes + state.statistics.passed - before
        try loop.consumer.pollEnded()
        state.statistics.polls += 1
        loop.recordLevel(at: began)
        try takeRings()
        if try doorbell.pollEnded(rows: rows) { state.statistics.dozes += 1 }
        state.statistics.missedRings = max(state.statistics.missedRings, doorbell.missedRings)
        cursors.followRecovery(now: .now)
        recoveries.closeRestingSession(at: .now)
        loop.publishStatistics()
    }

    /// The tables whose rows the next window skips. Once one of them has gained a subscriber in this poll there are none,
    /// so that a client that keeps coming and going does not cause windows to be read again for ever.
    private func unheardTables() -> [Table] {
        if hasNewListener { return [] }
        return Array(
            state.tables.catalog.tables.lazy.filter { !self.loop.consumer.wantsTable($0) }.prefix(Self.mostUnheard))
    }

    /// - Returns: nil when the window is done; otherwise the reason to read it again, perhaps after the catalog.
    private func readWindow() throws -> WindowReader.Obstacle? {
        guard let cursor = state.position.cursor, let epoch = state.epochs.current else { return nil }
        let unheard = unheardTables()
        let window = WindowReader(
            consumer: loop.consumer, catalog: state.tables.catalog, settled: settled, mayAskAgain: refreshes < 5,
            catalogAsOf: catalog.asOf, skip: state.position.skip,
            passingOver: unheard, after: FeedCursor(epoch: epoch, at: cursor)
        ) { [unowned loop] in loop.serveAnytimeWork() }
        // Even if the connection broke: changes that were handed on must not be repeated.
        defer { recordWindow(window) }
        let began = ContinuousClock.now
        let (isVersionDue, isLookDue) = (began >= catalog.dueAt, began >= losses.dueAt)
        let contents = WindowStatements.Contents(
            version: isVersionDue ? catalog.version : nil, bringsLook: isLookDue,
            members: state.tables.catalog.memberTables,
            narrowed: state.tables.catalog.narrowedMembers, unheard: unheard.map(\.oid))
        try streamWindow(contents, after: cursor, into: window)
        guard let next = try window.finishWindow() else { return window.obstacle }
        if isVersionDue { catalog.confirmCurrent(asOf: began) }
        if !window.orphans.isEmpty {
            // Only a catalog younger than the window can say that a table is gone: it may have been watched again.
            try catalog.refreshCatalog()
            if let back = window.orphans.keys.first(where: { state.tables.catalog.table($0) != nil }) {
                window.reopenWindow()
                return .table(back)
            }
        }
        if isLookDue { losses.dueAt = .now + CatalogWatch.interval }
        try losses.checkWindow(window, from: cursor, to: next)
        if !window.lossy.isEmpty { loop.consumer.changesAreLost(of: window.lossy) }
        if window.undelivered > 0 {
            loop.logger.warning(
                """
                \(window.undelivered) rows of realtime.messages were not delivered: they have no topic, or a payload of \
                more than 3,000,000 bytes.
                """)
        }
        state.tables.windowRead(upTo: next)
        state.position.windowEnded(
            at: next, isEmpty: window.isEmpty, taken: window.isEmpty ? 0 : loop.consumer.observed.taken)
        if let mark = state.recovery.withPoints({ $0.windowEnded(at: next, in: epoch, now: .now) }) {
            loop.consumer.markReached(mark, at: FeedCursor(epoch: epoch, at: next))
        }
        return nil
    }

    /// - Throws: `PostgresError`, of kind `timeout` if Postgres took longer than the window's limit.
    private func streamWindow(
        _ contents: WindowStatements.Contents, after cursor: Snapshot, into window: WindowReader
    ) throws {
        do {
            try statements.streamWindow(contents, after: cursor, from: reader, within: state.patience.limit) {
                try window.takeRow($0)
            }
        } catch let error as PostgresError where error.kind == .timeout && reader.isBroken {
            state.patience.windowTimedOut()
            loop.logger.warning(
                """
                Postgres did not return the next changes in time, as may happen after a very large transaction: it \
                gets more time.
                """,
                metadata: ["seconds": "\(state.patience.limit.components.seconds)"])
            throw error
        }
        state.patience.windowArrived()
    }

    /// Counts the changes handed on from a window, complete or not. Runs after the end was marked: a mark covers the
    /// windows before.
    private func recordWindow(_ window: WindowReader) {
        state.position.handedOn(window.handed)
        state.statistics.changes += window.handed.count
        if !window.isEmpty {
            let count = window.handed.count + (window.isComplete ? window.passed : 0)
            state.recovery.withPoints { $0.handedOn(count) }
        }
        if window.isComplete {
            state.statistics.passed += window.passed
            state.statistics.orphans += window.orphans.values.reduce(0, +)
        } else {
            state.position.windowBroke()
        }
    }
}
