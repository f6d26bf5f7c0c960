import Hub
import Logging
import Matching
import Postgres
import Schema

/// One connected life of the feed: session A reads and listens, session B waits for the doorbell's lock.
///
/// It connects, and then serves what is due, one thing at a time: the next window above all, and between two windows work
/// that was posted, members who recover, the stored cursor, other hubs of the name, and deleting what is old. Each of these
/// is a type with a time of its own (`dueAt`).
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
    /// When members who have just come are seen to: many come at once, and one look serves them all.
    private var newcomersAt: ContinuousClock.Instant
    /// Tables of this poll's changes that the catalog was read anew for, as it described them before.
    private var settled: [UInt32: Table?] = [:]
    private var refreshes = 0
    /// In this poll somebody began to hear a table that was being passed over.
    private var hasNewListener = false
    /// More tables are not named in a window's statement.
    private static let mostUnheard = 500

    /// Connects, finds the place to go on from, and listens.
    init(loop: FeedLoop) throws {
        self.loop = loop
        state = loop.state
        let (configuration, logger, consumer, state) = (loop.configuration, loop.logger, loop.consumer, loop.state)
        sockets = FeedSockets(inbox: loop.inbox)
        sockets.onWake = { [unowned loop] in loop.serveAnytimeWork() }
        let options = try ConnectionOptions(conninfo: configuration.conninfo)
        reader = try PostgresConnection(options, waiter: sockets, logger: logger)
        try reader.run(FeedSQL.sessionOfFeed)
        try Primary.demand(on: reader)
        try RoostSchema.demandCurrent(on: reader)
        if let complaint = try ServerClock.complaint(about: reader) { logger.warning("\(complaint)") }
        // Before anything is read: what commits from here on rings here.
        try reader.run("listen roost")
        var position = try ServerPosition(of: configuration.node, knowing: state.epochs.known, on: reader)
        let restore = position.restore
        if let restore {
            try reader.run(EpochWriter.newIncarnation(behind: restore))
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
        state.adopt(position, isRestored: restore != nil, logger: logger)
        try beginRecovery(storedAt: position.stored)
        try epochs.deleteForeignChanges()
        try epochs.begin()
        try catalog.begin()
        // A cursor that came from the table is there already; to store it again would claim that it covers all that was
        // handed on since.
        if position.stored == nil { try cursors.store() }
    }

    /// Finds out on which history the feed is now, and, once in a process, what the last one left.
    private func beginRecovery(storedAt position: Snapshot?) throws {
        guard let cursor = state.position.cursor else { return }
        guard state.recovery.use({ $0.restart }) == nil else {
            let isSameHistory = state.position.isSameHistory
            return state.recovery.use { $0.reconnected(at: cursor, isSameHistory: isSameHistory, now: .now) }
        }
        let stored = try reader.query(RecoverySQL.recoveryStored, [loop.configuration.node])
        let left = stored.count > 0 ? stored.text(0, 0).flatMap { Snapshot($0) } : nil
        state.position.found(storedCursor: left != nil)
        state.recovery.use { $0.began(after: left, storedAt: position, at: cursor, now: .now) }
        if left == nil { loop.consumer.nobodyIsFromBefore() }
    }

    // MARK: What is due

    func serve() throws {
        state.retry.connected(at: .now)
        loop.consumer.feedDidBecomeReady(state.tables.catalog)
        loop.report(.ready)
        while !loop.inbox.isStopping {
            try doorbell.serve()
            loop.serveAnytimeWork()
            try serveIdleWork()
            try serveWindowWaiters()
            let isRecovering = try serveRecoveries()
            // A ring that came with the answer to any statement is not on the socket any more.
            try takeRings()
            let now = ContinuousClock.now
            if now >= doorbell.pollAt {
                try poll()
            } else if let due = cursors.dueAt, now >= due {
                try cursors.store()
            } else if now >= rivals.dueAt {
                try rivals.look()
            } else if now >= pruning.dueAt {
                try prune()
            } else if !isRecovering {
                rest(from: now)
            }
        }
        try cursors.finish()
        loop.publishStatistics()
    }

    /// Sleeps until something arrives or is due.
    private func rest(from now: ContinuousClock.Instant) {
        var due = min(doorbell.pollAt, pruning.dueAt, rivals.dueAt)
        if let cursor = cursors.dueAt { due = min(due, cursor) }
        if let scan = recoveries.dueAt { due = min(due, scan) }
        if loop.consumer.recoveries?.hasNewcomers == true { due = min(due, newcomersAt) }
        if let bell = doorbell.dueAt { due = min(due, bell) }
        sockets.others = recoveries.descriptors
        sockets.rest(watching: reader.descriptor, until: max(due, now + .milliseconds(1)))
    }

    private func takeRings() throws { state.statistics.rings += try doorbell.takeRings() }

    private func prune() throws {
        let deleted = try pruning.deleteBatch()
        state.statistics.pruned += deleted
        if deleted > 0 { loop.publishStatistics() }
    }

    /// Runs posted work that may query.
    private func serveIdleWork() throws {
        guard loop.inbox.hasIdleWork else { return }
        // Work that waits for its own query must not be overtaken by other work in the middle.
        sockets.servesInbox = false
        defer { sockets.servesInbox = true }
        for work in loop.inbox.takeWhenIdle() {
            let ask: ((String, [String?]) throws -> [[String?]])? = reader.isBroken ? nil : { try self.ask($0, $1) }
            work(
                FeedContext(catalog: state.tables.catalog, status: loop.published.status, ask: ask) { [self] in
                    try catalog.refresh(knowing: $0)
                    return state.tables.catalog
                })
        }
        if reader.isBroken { throw PostgresError(.connection, "The connection to Postgres broke during a query.") }
    }

    /// Reads a window for those who wait for one that begins after they asked. A catalog that changed before counts in it.
    private func serveWindowWaiters() throws {
        let waiters = loop.inbox.takeWindowWaiters()
        guard !waiters.isEmpty else { return }
        catalog.dueAt = .now
        losses.dueAt = .now
        do { try poll() } catch {
            for waiter in waiters { waiter(false) }
            throw error
        }
        for waiter in waiters { waiter(true) }
    }

    /// Rows of texts.
    private func ask(_ sql: String, _ parameters: [String?] = []) throws -> [[String?]] {
        let rows = try reader.query(sql, parameters, within: loop.configuration.statementLimit)
        return (0..<rows.count).map { row in (0..<rows.width).map { rows.text(row, $0) } }
    }

    /// As `ask`. Whoever came meanwhile would be taken in by the registry that is just being bound.
    private func askAlone(_ sql: String) throws -> [[String?]] { try alone { try ask(sql) } }

    /// Lets nobody in while Postgres is asked.
    private func alone<Answer>(_ question: () throws -> Answer) throws -> Answer {
        sockets.servesInbox = false
        defer { sockets.servesInbox = true }
        return try question()
    }

    // MARK: Recovery

    /// Brings members to the present between two windows.
    ///
    /// - Returns: whether there is more to do at once.
    private func serveRecoveries() throws -> Bool {
        guard let scheduler = loop.consumer.recoveries, !scheduler.isEmpty else {
            recoveries.endScans()
            return false
        }
        scheduler.bind(asking: { try self.askAlone($0) })
        try receiveNewcomers(scheduler)
        guard let present = state.present else { return false }
        return try recoveries.serve(
            scheduler,
            at: RecoveryReader.Present(
                cursor: present, catalog: state.tables.catalog, tablesSince: state.tables.since))
    }

    private func receiveNewcomers(_ scheduler: RecoveryScheduler) throws {
        guard scheduler.hasNewcomers, ContinuousClock.now >= newcomersAt else { return }
        newcomersAt = .now + .milliseconds(5)
        // A cursor may come from another hub that is ahead of this one, and a policy may have changed while this one slept:
        // both are settled by a look that begins now.
        catalog.dueAt = .now
        losses.dueAt = .now
        try poll()
        let pruned = try FeedHistory.pruned(on: reader)
        guard let epoch = state.epochs.current, let present = state.position.cursor,
            case let (marks, left?, restored) = state.recovery.use({ ($0.marks, $0.restart, $0.restored) })
        else { return }
        // Of whoever came behind this question the epoch would not be known, and a good cursor would be refused.
        let known = try alone { try epochs.known(of: scheduler.epochsOfNewcomers.subtracting([epoch])) }
        scheduler.begin(
            on: FeedHistory(
                epoch: epoch, epochs: known, present: present, marks: marks, restart: left, restored: restored,
                pruned: pruned),
            slicesOf: RecoveryReader.sliceRows, asking: { try self.askAlone($0) })
    }

    // MARK: Windows

    /// Reads all that is new; where the catalog turns out to be old, once more with a new one, and where somebody began to hear
    /// a table that was passed over, once more with all tables.
    private func poll() throws {
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
            try catalog.refresh()
        }
        let rows = state.statistics.changes + state.statistics.passed - before
        try loop.consumer.pollEnded()
        state.statistics.polls += 1
        loop.isLevel(at: began)
        try takeRings()
        if try doorbell.pollEnded(rows: rows) { state.statistics.dozes += 1 }
        state.statistics.missedRings = max(state.statistics.missedRings, doorbell.missedRings)
        cursors.followRecovery(now: .now)
        recoveries.closeRestingSession(at: .now)
        loop.publishStatistics()
    }

    /// The tables whose rows the next window passes over. In a poll in which somebody began to hear one of them it is none, so
    /// that a client that comes and goes all the time does not have a window read forever.
    private func unheardTables() -> [Table] {
        if hasNewListener { return [] }
        return Array(state.tables.catalog.tables.lazy.filter { !self.loop.consumer.hears($0) }.prefix(Self.mostUnheard))
    }

    /// - Returns: nil when the window is done; else why it has to be read again, and the catalog perhaps before it.
    private func readWindow() throws -> WindowReader.Obstacle? {
        guard let cursor = state.position.cursor, let epoch = state.epochs.current else { return nil }
        let unheard = unheardTables()
        let window = WindowReader(
            consumer: loop.consumer, catalog: state.tables.catalog, settled: settled, mayAskAgain: refreshes < 5,
            catalogAsOf: catalog.asOf, skip: state.position.skip,
            passingOver: unheard, after: FeedCursor(epoch: epoch, at: cursor)
        ) { [unowned loop] in loop.serveAnytimeWork() }
        // Also where the connection broke: what was handed on must not come again.
        defer { note(window) }
        let began = ContinuousClock.now
        let (isVersionDue, isLookDue) = (began >= catalog.dueAt, began >= losses.dueAt)
        let contents = WindowStatements.Contents(
            version: isVersionDue ? catalog.version : nil, bringsLook: isLookDue,
            members: state.tables.catalog.memberTables,
            narrowed: state.tables.catalog.narrowedMembers, unheard: unheard.map(\.oid))
        try stream(contents, after: cursor, into: window)
        guard let next = try window.finish() else { return window.obstacle }
        if isVersionDue { catalog.isCurrent(asOf: began) }
        if !window.orphans.isEmpty {
            // Only a catalog younger than the window can say that a table is gone: it may have been watched again.
            try catalog.refresh()
            if let back = window.orphans.keys.first(where: { state.tables.catalog.table($0) != nil }) {
                window.reopen()
                return .table(back)
            }
        }
        if isLookDue { losses.dueAt = .now + CatalogWatch.interval }
        try losses.look(window, from: cursor, to: next)
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
        if let mark = state.recovery.use({ $0.windowEnded(at: next, in: epoch, now: .now) }) {
            loop.consumer.marked(mark, at: FeedCursor(epoch: epoch, at: next))
        }
        return nil
    }

    /// - Throws: `PostgresError`, of the kind `timeout` where Postgres took longer than a window is given.
    private func stream(
        _ contents: WindowStatements.Contents, after cursor: Snapshot, into window: WindowReader
    ) throws {
        do {
            try statements.stream(contents, after: cursor, from: reader, within: state.patience.limit) {
                try window.take($0)
            }
        } catch let error as PostgresError where error.kind == .timeout && reader.isBroken {
            state.patience.wasTooShort()
            loop.logger.warning(
                """
                Postgres did not return the next changes in time, as may happen after a very large transaction: it \
                gets more time.
                """,
                metadata: ["seconds": "\(state.patience.limit.components.seconds)"])
            throw error
        }
        state.patience.sufficed()
    }

    /// Counts what was handed on of a window, complete or not. After its end was marked: a mark covers the windows before.
    private func note(_ window: WindowReader) {
        state.position.handedOn(window.handed)
        state.statistics.changes += window.handed.count
        if !window.isEmpty {
            let count = window.handed.count + (window.isComplete ? window.passed : 0)
            state.recovery.use { $0.handedOn(count) }
        }
        if window.isComplete {
            state.statistics.passed += window.passed
            state.statistics.orphans += window.orphans.values.reduce(0, +)
        } else {
            state.position.windowBroke()
        }
    }
}
