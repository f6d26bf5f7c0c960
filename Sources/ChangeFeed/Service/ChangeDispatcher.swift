import Dispatch
import Hub
import Logging
import Matching
import Postgres
import Synchronization

/// Brings what the feed reads to those who asked for it: has each change matched and judged, hands the loops what they
/// are to send, and tells them up to where all is delivered.
///
/// **Overload**: the loops say when their sockets have taken a batch, and no more than `batchesAhead` are ever on their
/// way; a large transaction is read no faster than that.
///
/// Unchecked: confined to the feed's thread, on which the feed's work and the consumer's methods run, one at a time; what
/// other threads may see is behind a mutex.
final class ChangeDispatcher: FeedConsumer, @unchecked Sendable {
    /// What the hub hears of the feed besides changes. Called on the feed's thread.
    struct Hooks: Sendable {
        /// The mark from where on members may yet recover; nil where nobody may.
        let oldestMark: @Sendable () -> Int?
        /// All was handed on up to this mark.
        let whenMarked: @Sendable (Int) -> Void
        /// No hub of this name was here before.
        let whenFirst: @Sendable () -> Void
        let whenStatusChanges: @Sendable (FeedStatus) -> Void
    }

    let subscriptions: LiveSubscriptions
    let budget: SharedConditionBudget
    let pipeline: DeliveryPipeline
    /// How many changes wait for filters; from any thread.
    let undecidedCount = Mutex(0)
    private let sink: any ChangeSink
    private let observer: (any ChangeObserver)?
    private let hooks: Hooks
    private let inbox: FeedInbox
    private let logger: Logger
    private let decider: ConditionDecider
    private let principals = PrincipalTable()
    /// Of the window under way.
    private var cursors: CursorWindow?
    private var watermarks: WatermarkAudience
    /// The tables that the observer needs, by oid.
    private var observedTables: Set<UInt32> = []
    private let receiptTables: ReceiptTables?
    /// Words of changes that could not be recorded, for groups for which something waits that came before.
    private var losses: [(group: ChangeGroupID, message: String, since: ContinuousClock.Instant)] = []
    private let ahead = DispatchSemaphore(value: ChangeDispatcher.batchesAhead)
    private static let batchesAhead = 2

    private lazy var undecided: DecisionQueue = DecisionQueue(
        decider: decider, delivery: self,
        publish: { [unowned self] count in undecidedCount.withLock { $0 = count } },
        whenDecided: { [weak self] in self?.inbox.perform { [weak self] _ in self?.takeDecisions() } })
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

    /// No filter is asked about again from now on. From any thread.
    func stop() { decider.stop() }

    /// Ends the threads that have filters decided and policies asked, after the feed's.
    func join() {
        pipeline.stop()
        rowReader.stop()
        decider.join(within: .seconds(1))
    }

    // MARK: Who hears

    /// Policies are asked for these claims, too, from here on. Whoever is known to be shown nothing for now is told again.
    func admit(_ claims: Claims, to id: ChangeGroupID) {
        subscriptions.registry.admit(claims, to: id)
        let complaints = pipeline.complaints(about: claims, in: id, of: subscriptions.registry)
        if !complaints.isEmpty { sink.deliver(complaints, to: id.loop, whenTaken: {}) }
    }

    // MARK: Live changes

    /// Subscribers and the observer are all who are handed what windows bring. Who recovers reads for itself, and hears the
    /// table live by then; members tables of scopes are told apart from changes (`membersChanged`).
    func hears(_ table: Table) -> Bool {
        observedTables.contains(table.oid) || subscriptions.registry.hears(table.oid)
    }

    func windowBegan(_ cursors: CursorWindow) { self.cursors = cursors }

    func consume(_ entries: [FeedEntry]) throws {
        try undecided.makeRoom()
        guard let catalog = subscriptions.registry.catalog else { return }
        var batch = DeliveryBatch(entries, catalog: catalog, for: .everybody(cursors))
        var later: [UndecidedChanges.Item] = []
        if !subscriptions.registry.isEmpty {
            later = batch.match(in: &subscriptions.registry, behind: undecided.changes)
            subscriptions.tellOfEndings()
            try pipeline.judge(&batch, for: subscriptions.registry)
        }
        undecided.add(later)
        deliver(&batch, waiting: later.map { ($0.change, $0.waits) }) { [cursors] place in
            guard case .change(let change) = entries[place] else { return nil }
            return (change, cursors?.cursor(change.id) ?? "")
        }
        guard let observer else { return }
        let changes = entries.compactMap { entry in
            switch entry {
            case .change(let change), .notification(let change): change
            case .broadcast: nil
            }
        }
        if !changes.isEmpty { observer.take(changes) }
    }

    /// Sends the loops what a batch has for them.
    ///
    /// - Parameters:
    ///   - waits: of changes that wait for filters, or do not any more.
    ///   - change: of a place, with its cursor, for those who have to wait for it.
    private func deliver(
        _ batch: inout DeliveryBatch, waiting waits: [(change: RowChange, waits: [MessageWait])],
        change: (Int) -> (RowChange, cursor: String)?
    ) {
        var loops = pipeline.events(of: &batch, for: subscriptions.registry)
        var waits = waits
        announceWaiting(isFirst: !batch.postponed.isEmpty && pipeline.postponed.isEmpty, to: &loops)
        for (place, members) in batch.postponed.sorted(by: { $0.key < $1.key }) {
            guard let (change, cursor) = change(place) else { continue }
            pipeline.postponed.add(change, cursor: cursor, for: members, at: .now)
            let waitsForPolicies = PostponedChanges.waits(of: members)
            // What filters have decided may wait for policies now: that is one word, or it would seem decided in between.
            if let index = waits.firstIndex(where: { $0.change.id == change.id }) {
                let groups = Set(waitsForPolicies.map(\.group))
                waits[index].waits.removeAll { groups.contains($0.group) }
                waits[index].waits += waitsForPolicies
            } else {
                waits.append((change, waitsForPolicies))
            }
        }
        for (change, waits) in waits { pipeline.tellWaits(of: change, waits, to: &loops) }
        send(loops)
    }

    /// Tells loops that changes wait here which came before those that they are sent now.
    ///
    /// - Parameter isFirst: none waited before for policies.
    private func announceWaiting(isFirst: Bool, to loops: inout [[FeedEvent]]) {
        // To all of them: on any of them may join who gets its changes on another.
        for loop in loops.indices where isFirst || !undecided.changes.isEmpty && !loops[loop].isEmpty {
            loops[loop].insert(.withheld, at: 0)
        }
    }

    private func send(_ loops: [[FeedEvent]]) {
        let complaints = pipeline.complaints(in: subscriptions.registry)
        for (loop, changes) in loops.enumerated() {
            let events = complaints[loop] + changes
            guard !events.isEmpty else { continue }
            ahead.wait()
            watermarks.delivered(to: loop)
            sink.deliver(events, to: loop) { [ahead] in ahead.signal() }
        }
    }

    /// What was decided meanwhile is delivered, and what a policy failed on is judged again.
    func pollEnded() throws {
        defer { tellOfLosses() }
        try undecided.takeDecisions()
        guard let catalog = subscriptions.registry.catalog, pipeline.postponed.isDue(at: .now) else { return }
        let items = pipeline.postponed.items
        var batch = DeliveryBatch(items, catalog: catalog)
        subscriptions.end(
            try batch.match(in: &subscriptions.registry, asking: { try subscriptions.answers(to: $0) }))
        try pipeline.judge(&batch, for: subscriptions.registry)
        var loops = pipeline.events(of: &batch, for: subscriptions.registry)
        let left = items.indices.map { batch.postponed[$0] ?? [] }
        pipeline.postponed.settle(left)
        for (item, left) in zip(items, left) where left != item.members {
            pipeline.tellWaits(of: item.change, PostponedChanges.waits(of: left, before: item.members), to: &loops)
        }
        send(loops)
    }

    // MARK: Marks

    func marked(_ mark: Int, at cursor: FeedCursor) {
        // Who is told that it has all up to here must not lack what waits.
        guard pipeline.postponed.isEmpty else { return }
        guard undecided.changes.isEmpty else { return undecided.hold(mark) }
        hooks.whenMarked(mark)
        for loop in watermarks.loops(toHearOf: mark, at: .now) {
            sink.deliver([.boundary(mark), .reached(cursor: cursor.text)], to: loop, whenTaken: {})
        }
    }

    func changesAreGone(upTo pruned: Snapshot) {
        scheduler.changesAreGone(upTo: pruned)
        for loop in 0..<sink.loopCount { sink.deliver([.gap], to: loop, whenTaken: {}) }
    }

    func changesAreLost(of tables: Set<UInt32>) {
        for (group, message) in subscriptions.losses(of: tables) {
            // Of several that wait for the same, the first has its own time.
            let known = losses.indices.filter { losses[$0].group == group && losses[$0].message == message }
            if known.count > 1 { losses.remove(at: known[1]) }
            losses.append((group, message, .now))
        }
        tellOfLosses()
    }

    /// Tells the groups for which nothing waits any more that was written before the loss. An application loads its data at that word,
    /// and a version from before the loss that came behind it would stay.
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
            watermarks.delivered(to: loop)
            sink.deliver(events, to: loop, whenTaken: {})
        }
    }

    // MARK: What the feed tells besides

    func feedDidBecomeReady(_ catalog: Catalog) { catalogChanged(catalog) }

    func catalogChanged(_ catalog: Catalog) {
        if let observer {
            observedTables = Set(catalog.tables.lazy.filter(observer.observes).map(\.oid))
            pipeline.messageTables = Set(catalog.tables.lazy.filter(observer.asksAfter).map(\.oid))
        }
        if let receiptTables {
            let tables = catalog.tables.filter { receiptTables.contains(schema: $0.schema, table: $0.name) }
            for table in tables { receiptTables.learn(table.primaryKey, schema: table.schema, table: table.name) }
            pipeline.receiptTables = Set(tables.map(\.oid))
        }
        pipeline.catalogChanged(catalog)
        scheduler.catalogChanged(catalog)
        subscriptions.catalogChanged(catalog)
    }

    func membersChanged(_ changes: [MemberChange]) { pipeline.membersChanged(changes) }

    func statusChanged(_ status: FeedStatus) {
        if status != .ready { scheduler.databaseIsAway() }
        sink.feed(isReady: status == .ready)
        hooks.whenStatusChanges(status)
    }

    var oldestMark: Int? { hooks.oldestMark() }

    func nobodyIsFromBefore() { hooks.whenFirst() }

    var observed: (taken: Int, settled: Int) {
        // In this order: what is taken in between must not count as settled.
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

    func deliver(_ items: [UndecidedChanges.Item], _ answers: ConditionEvaluator.Answers) throws {
        guard let catalog = subscriptions.registry.catalog else {
            throw PostgresError(.connection, "The catalog is not known yet.")
        }
        var batch = DeliveryBatch(items, met: answers.met, catalog: catalog)
        try pipeline.judge(&batch, for: subscriptions.registry)
        endUndecided(items, answers)
        deliver(&batch, waiting: items.map { ($0.change, $0.ends) }) { place in
            (items[place].change, items[place].cursor)
        }
        // What a policy failed on waits on, from now.
        for place in losses.indices where items.contains(where: { $0.since <= losses[place].since }) {
            losses[place].since = .now
        }
        scheduler.filtersAreDecided()
    }

    /// Ends those filters that the database did not decide.
    private func endUndecided(_ items: [UndecidedChanges.Item], _ answers: ConditionEvaluator.Answers) {
        guard !answers.givenUp.isEmpty else { return }
        var ended: Set<GivenUpFilter> = []
        for (place, undecided) in items.flatMap(\.matches.undecided).enumerated() {
            guard let reason = answers.givenUp[place] else { continue }
            ended.insert(.init(definition: undecided.group, binding: undecided.id, reason: reason))
        }
        subscriptions.end(ended)
    }

    func endExcess(of tally: UndecidedCount, over most: Int) -> Set<Int>? {
        let ended = subscriptions.registry.endExcess(of: tally, over: most)
        if ended != nil { subscriptions.tellOfEndings() }
        return ended
    }

    /// A mark that waited for decisions. Its cursor is not told: some may be further already, who waited for none.
    func covered(_ mark: Int) {
        tellOfLosses()
        guard pipeline.postponed.isEmpty else { return }
        hooks.whenMarked(mark)
        for loop in watermarks.loops(toHearOf: mark, at: .now) {
            sink.deliver([.boundary(mark)], to: loop, whenTaken: {})
        }
    }
}
