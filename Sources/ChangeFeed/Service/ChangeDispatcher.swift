import Dispatch
import Hub
import Logging
import Matching
import Postgres
import Synchronization

/// Brings the feed's changes to subscribers: has each change matched and judged, gives the loops their events, and tells
/// them up to where everything is delivered.
///
/// **Overload**: the loops report when their sockets have taken a batch, and no more than `batchesAhead` are ever under
/// way; a large transaction is read no faster than that.
///
/// Unchecked: confined to the feed's thread, which runs the feed's work and the consumer's methods one at a time; a mutex
/// protects everything that other threads may see.
final class ChangeDispatcher: FeedConsumer, @unchecked Sendable {
    /// News of the feed for the hub, besides changes. Called on the feed's thread.
    struct Hooks: Sendable {
        /// The oldest mark from which members may still recover; nil if none may.
        let oldestMark: @Sendable () -> Int?
        /// Everything up to this mark was handed on.
        let whenMarked: @Sendable (Int) -> Void
        /// No hub of this name served the database before.
        let whenFirst: @Sendable () -> Void
        let whenStatusChanges: @Sendable (FeedStatus) -> Void
    }

    let subscriptions: LiveSubscriptions
    let budget: SharedConditionBudget
    let pipeline: DeliveryPipeline
    /// Number of changes that wait for filters; from any thread.
    let undecidedCount = Mutex(0)
    private let sink: any ChangeSink
    private let observer: (any ChangeObserver)?
    private let hooks: Hooks
    private let inbox: FeedInbox
    private let logger: Logger
    private let decider: ConditionDecider
    private let principals = PrincipalTable()
    /// The current window's cursors.
    private var cursors: CursorWindow?
    private var watermarks: WatermarkAudience
    /// The oids of the tables that the observer needs.
    private var observedTables: Set<UInt32> = []
    private let receiptTables: ReceiptTables?
    /// Messages about unrecorded changes, held for groups that still wait for earlier changes.
    private var losses: [(group: ChangeGroupID, message: String, since: ContinuousClock.Instant)] = []
    private let ahead = DispatchSemaphore(value: ChangeDispatcher.batchesAhead)
    private static let batchesAhead = 2

    private lazy var undecided: DecisionQueue = DecisionQueue(
        decider: decider, delivery: self,
        publish: { [unowned self] count in undecidedCount.withLock { $0 = count } },
        whenDecided: { [weak self] in self?.inbox.postWork { [weak self] _ in self?.takeDecisions() } })
    private(set) lazy var scheduler: RecoveryScheduler = RecoveryScheduler(
        subscriptions, pipeline, undecided, principals: principals, sink: sink, inbox: inbox, rowReader: rowReader)
    let rowReader: RowReader

    init(
        _ configuration: FeedConfiguration, sink: any ChangeSink, observer: (any ChangeObserver)?, hooks: Hooks,
        inbox: FeedInbox, logger: Logger
    ) {
        self.sink = sink
        self.observer = observer
        self.hooks = hooks
        self.inbox = inbox
        self.logger = logger
        receiptTables = configuration.receiptTables
        watermarks = WatermarkAudience(loops: sink.loopCount)
        pipeline = DeliveryPipeline(
            conninfo: configuration.conninfo, sessions: configuration.policySessions, loops: sink.loopCount,
            logger: logger)
        budget = SharedConditionBudget(configuration.filters)
        rowReader = RowReader(conninfo: configuration.conninfo, limits: configuration.rows, logger: logger)
        subscriptions = LiveSubscriptions(
            configuration, principals: principals, budget: budget, inbox: inbox, sink: sink, logger: logger)
        decider = ConditionDecider(
            conninfo: configuration.conninfo, limits: configuration.filters, budget: budget, logger: logger)
    }

    /// Stops further questions about filters. From any thread.
    func stop() { decider.stop() }

    /// Stops the threads that decide filters and evaluate policies, after the feed's thread.
    func join() {
        pipeline.stop()
        rowReader.stop()
        decider.join(within: .seconds(1))
    }

    // MARK: Claims

    /// Adds claims to a group, for which policies are then evaluated too. Repeats the complaints to users who are shown
    /// nothing at present.
    func admitClaims(_ claims: Claims, to id: ChangeGroupID) {
        subscriptions.registry.admitClaims(claims, to: id)
        let complaints = pipeline.complaints(about: claims, in: id, of: subscriptions.registry)
        if !complaints.isEmpty { sink.deliverEvents(complaints, to: id.loop, whenTaken: {}) }
    }

    // MARK: Live changes

    /// Only subscribers and the observer receive a window's changes. A recovering member reads the outbox itself, and has
    /// its live subscription by then; members tables of scopes are reported separately (`membersChanged`).
    func wantsTable(_ table: Table) -> Bool {
        observedTables.contains(table.oid) || subscriptions.registry.hasSubscriptions(table.oid)
    }

    func windowBegan(_ cursors: CursorWindow) { self.cursors = cursors }

    func consumeEntries(_ entries: [FeedEntry]) throws {
        try undecided.makeRoom()
        guard let catalog = subscriptions.registry.catalog else { return }
        var batch = DeliveryBatch(entries, catalog: catalog, for: .everybody(cursors))
        var later: [UndecidedChanges.Item] = []
        if !subscriptions.registry.isEmpty {
            later = batch.match(in: &subscriptions.registry, behind: undecided.changes)
            subscriptions.tellOfEndings()
            try pipeline.judgeBatch(&batch, for: subscriptions.registry)
        }
        undecided.addItems(later)
        deliverBatch(&batch, waiting: later.map { ($0.change, $0.waits) }) { [cursors] place in
            guard case .change(let change) = entries[place] else { return nil }
            return (change, cursors?.cursorText(change.id) ?? "")
        }
        guard let observer else { return }
        let changes = entries.compactMap { entry in
            switch entry {
            case .change(let change), .notification(let change): change
            case .broadcast: nil
            }
        }
        if !changes.isEmpty { observer.takeChanges(changes) }
    }

    /// Sends the loops a batch's events.
    ///
    /// - Parameters:
    ///   - waits: changes that wait for filters, or no longer do.
    ///   - change: returns the change at a place with its cursor, for subscribers that have to wait for it.
    private func deliverBatch(
        _ batch: inout DeliveryBatch, waiting waits: [(change: RowChange, waits: [MessageWait])],
        change: (Int) -> (RowChange, cursor: String)?
    ) {
        var loops = pipeline.events(of: &batch, for: subscriptions.registry)
        var waits = waits
        announceWaiting(isFirst: !batch.postponed.isEmpty && pipeline.postponed.isEmpty, to: &loops)
        for (place, members) in batch.postponed.sorted(by: { $0.key < $1.key }) {
            guard let (change, cursor) = change(place) else { continue }
            pipeline.postponed.addChange(change, cursor: cursor, for: members, at: .now)
            let waitsForPolicies = PostponedChanges.waits(of: members)
            // A change that filters have decided may now wait for policies. One event reports both, or the change would
            // seem decided in between.
            if let index = waits.firstIndex(where: { $0.change.id == change.id }) {
                let groups = Set(waitsForPolicies.map(\.group))
                waits[index].waits.removeAll { groups.contains($0.group) }
                waits[index].waits += waitsForPolicies
            } else {
                waits.append((change, waitsForPolicies))
            }
        }
        for (change, waits) in waits { pipeline.tellWaits(of: change, waits, to: &loops) }
        sendEvents(loops)
    }

    /// Tells loops that earlier changes than the ones they are being sent are waiting here.
    ///
    /// - Parameter isFirst: true if none waited for policies before.
    private func announceWaiting(isFirst: Bool, to loops: inout [[FeedEvent]]) {
        // To all loops: a member that joins on one loop may get its changes on another.
        for loop in loops.indices where isFirst || !undecided.changes.isEmpty && !loops[loop].isEmpty {
            loops[loop].insert(.withheld, at: 0)
        }
    }

    private func sendEvents(_ loops: [[FeedEvent]]) {
        let complaints = pipeline.complaints(in: subscriptions.registry)
        for (loop, changes) in loops.enumerated() {
            let events = complaints[loop] + changes
            guard !events.isEmpty else { continue }
            ahead.wait()
            watermarks.recordDelivery(to: loop)
            sink.deliverEvents(events, to: loop) { [ahead] in ahead.signal() }
        }
    }

    /// Delivers changes decided meanwhile, and judges again the changes that a policy failed on.
    func pollEnded() throws {
        defer { tellOfLosses() }
        try undecided.takeDecisions()
        guard let catalog = subscriptions.registry.catalog, pipeline.postponed.isDue(at: .now) else { return }
        let items = pipeline.postponed.items
        var batch = DeliveryBatch(items, catalog: catalog)
        subscriptions.endFilters(
            try batch.match(in: &subscriptions.registry, asking: { try subscriptions.answers(to: $0) }))
        try pipeline.judgeBatch(&batch, for: subscriptions.registry)
        var loops = pipeline.events(of: &batch, for: subscriptions.registry)
        let left = items.indices.map { batch.postponed[$0] ?? [] }
        pipeline.postponed.updateMembers(left)
        for (item, left) in zip(items, left) where left != item.members {
            pipeline.tellWaits(of: item.change, PostponedChanges.waits(of: left, before: item.members), to: &loops)
        }
        sendEvents(loops)
    }

    // MARK: Marks

    func markReached(_ mark: Int, at cursor: FeedCursor) {
        // A subscriber that is told it has everything up to here must not lack waiting changes.
        guard pipeline.postponed.isEmpty else { return }
        guard undecided.changes.isEmpty else { return undecided.holdMark(mark) }
        hooks.whenMarked(mark)
        for loop in watermarks.loops(toHearOf: mark, at: .now) {
            sink.deliverEvents([.boundary(mark), .reached(cursor: cursor.text)], to: loop, whenTaken: {})
        }
    }

    func changesAreGone(upTo pruned: Snapshot) {
        scheduler.changesAreGone(upTo: pruned)
        for loop in 0..<sink.loopCount { sink.deliverEvents([.gap], to: loop, whenTaken: {}) }
    }

    func changesAreLost(of tables: Set<UInt32>) {
        for (group, message) in subscriptions.lossMessages(of: tables) {
            // The first of several equal messages keeps its time; of the others, only the newest stays.
            let known = losses.indices.filter { losses[$0].group == group && losses[$0].message == message }
            if known.count > 1 { losses.remove(at: known[1]) }
            losses.append((group, message, .now))
        }
        tellOfLosses()
    }

    /// Reports losses to groups that no longer wait for anything written before the loss. An application reloads its data
    /// on this message, and an older version that arrived later would stay.
    private func tellOfLosses() {
        guard !losses.isEmpty else { return }
        var loops = [[FeedEvent]](repeating: [], count: sink.loopCount)
        losses.removeAll { loss in
            guard !pipeline.postponed.holds(anythingFor: loss.group, until: loss.since),
                !undecided.changes.holds(anythingFor: loss.group, until: loss.since)
            else { return false }
            loops[loss.group.loop].append(.loss(loss.message, loss.group))
            return true
        }
        for (loop, events) in loops.enumerated() where !events.isEmpty {
            watermarks.recordDelivery(to: loop)
            sink.deliverEvents(events, to: loop, whenTaken: {})
        }
    }

    // MARK: Other news of the feed

    func feedDidBecomeReady(_ catalog: Catalog) { catalogChanged(catalog) }

    func catalogChanged(_ catalog: Catalog) {
        if let observer {
            observedTables = Set(catalog.tables.lazy.filter(observer.observesTable).map(\.oid))
            pipeline.messageTables = Set(catalog.tables.lazy.filter(observer.wantsReceipts).map(\.oid))
        }
        if let receiptTables {
            let tables = catalog.tables.filter { receiptTables.contains(schema: $0.schema, table: $0.name) }
            for table in tables { receiptTables.learnKey(table.primaryKey, schema: table.schema, table: table.name) }
            pipeline.receiptTables = Set(tables.map(\.oid))
        }
        pipeline.catalogChanged(catalog)
        scheduler.catalogChanged(catalog)
        subscriptions.catalogChanged(catalog)
    }

    func membersChanged(_ changes: [MemberChange]) { pipeline.membersChanged(changes) }

    func statusChanged(_ status: FeedStatus) {
        if status != .ready { scheduler.databaseIsAway() }
        sink.feedChanged(isReady: status == .ready)
        hooks.whenStatusChanges(status)
    }

    var oldestMark: Int? { hooks.oldestMark() }

    func foundNoEarlierHub() { hooks.whenFirst() }

    var observed: (taken: Int, settled: Int) {
        // In this order, so that changes taken in between do not count as settled.
        guard let observer else { return (0, 0) }
        let settled = observer.settled
        return (observer.taken, settled)
    }

    var recoveries: RecoveryScheduler? { scheduler }
}

// MARK: Changes that waited for filters

extension ChangeDispatcher: DecisionDelivery {
    fileprivate func takeDecisions() {
        defer { tellOfLosses() }
        do {
            try undecided.takeDecisions()
        } catch {
            // The end of the next poll tries again.
            logger.debug("What filters match cannot be judged now: \(error)")
        }
    }

    func deliverDecided(_ items: [UndecidedChanges.Item], _ answers: ConditionEvaluator.Answers) throws {
        guard let catalog = subscriptions.registry.catalog else {
            throw PostgresError(.connection, "The catalog is not known yet.")
        }
        var batch = DeliveryBatch(items, met: answers.met, catalog: catalog)
        try pipeline.judgeBatch(&batch, for: subscriptions.registry)
        endUndecided(items, answers)
        deliverBatch(&batch, waiting: items.map { ($0.change, $0.ends) }) { place in
            (items[place].change, items[place].cursor)
        }
        // Changes that a policy failed on keep waiting, as of now.
        for place in losses.indices where items.contains(where: { $0.since <= losses[place].since }) {
            losses[place].since = .now
        }
        scheduler.filtersAreDecided()
    }

    /// Ends the filters that the database did not decide.
    private func endUndecided(_ items: [UndecidedChanges.Item], _ answers: ConditionEvaluator.Answers) {
        guard !answers.givenUp.isEmpty else { return }
        var ended: Set<GivenUpFilter> = []
        for (place, undecided) in items.flatMap(\.matches.undecided).enumerated() {
            guard let reason = answers.givenUp[place] else { continue }
            ended.insert(.init(definition: undecided.group, binding: undecided.id, reason: reason))
        }
        subscriptions.endFilters(ended)
    }

    func endExcess(of tally: UndecidedCount, over most: Int) -> Set<Int>? {
        let ended = subscriptions.registry.endExcess(of: tally, over: most)
        if ended != nil { subscriptions.tellOfEndings() }
        return ended
    }

    /// Handles a mark that waited for decisions. Its cursor is not sent: subscribers that waited for none may already be
    /// further.
    func markCovered(_ mark: Int) {
        tellOfLosses()
        guard pipeline.postponed.isEmpty else { return }
        hooks.whenMarked(mark)
        for loop in watermarks.loops(toHearOf: mark, at: .now) {
            sink.deliverEvents([.boundary(mark)], to: loop, whenTaken: {})
        }
    }
}
