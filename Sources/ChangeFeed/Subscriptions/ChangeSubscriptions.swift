import Dispatch
package import Hub
package import Logging
import Matching
import Postgres
import Synchronization

/// Brings row changes to those who asked for them: keeps what every group of subscribers wants, matches each change
/// against it, and hands the loops what they are to send.
///
/// Everything happens on the feed's thread, between its reads: a subscription that is answered `live` is in the index
/// before anything later is read, so no commit after the answer passes it by.
///
/// **Overload**: the loops say when their sockets have taken a batch, and no more than `batchesAhead` are ever on their
/// way; a large transaction is read no faster than that.
package final class ChangeSubscriptions: FeedConsumer, ChangeSource {
    private let configuration: FeedConfiguration
    let logger: Logger
    let sink: any ChangeSink
    private let whenStatusChanges: @Sendable (FeedStatus) -> Void
    // Unsafe in name only: all of these, and `principals`, are used by the feed's work and by the consumer's methods,
    // and the feed runs all of them on its one thread, one at a time.
    nonisolated(unsafe) var registry: SubscriptionRegistry
    nonisolated(unsafe) private var asker: ConditionEvaluator
    nonisolated(unsafe) var visibility: Visibility
    nonisolated(unsafe) var encoder = ChangeEncoder()
    nonisolated(unsafe) private var cursors: CursorWindow?
    nonisolated(unsafe) private var boundaries: WatermarkAudience
    nonisolated(unsafe) private var desk: RecoveryScheduler?
    nonisolated(unsafe) var postponed = PostponedChanges()
    nonisolated(unsafe) var undecided = UndecidedChanges()
    /// What is being decided.
    nonisolated(unsafe) var job: ConditionDecider.Job?
    nonisolated(unsafe) var beingDecided: [UndecidedChanges.Item] = []
    let decider: ConditionDecider
    let budget: SharedConditionBudget
    let undecidedCount = Mutex(0)
    let feed = Mutex<ChangeFeed?>(nil)
    let decisions = Mutex(VisibilityStatistics())
    /// The last attempt to withdraw the list of sessions failed.
    nonisolated(unsafe) private var isListStuck = false
    private let outboxGauge: OutboxGauge
    private let ahead: DispatchSemaphore
    nonisolated(unsafe) private let principals = PrincipalTable()
    private let askForOldestMark: @Sendable () -> Int?
    private let whenFirst: @Sendable () -> Void
    private let tap: (any ChangeObserver)?
    private static let batchesAhead = 2

    /// - Parameters, both called from the feed's thread:
    ///   - oldestMark: the mark from where on members may yet recover; nil where nobody may.
    ///   - whenFirst: no hub of this name was here before.
    package init(
        configuration: FeedConfiguration, sink: any ChangeSink, tap: (any ChangeObserver)? = nil, logger: Logger,
        oldestMark: @escaping @Sendable () -> Int? = { nil },
        whenFirst: @escaping @Sendable () -> Void = {},
        whenStatusChanges: @escaping @Sendable (FeedStatus) -> Void
    ) {
        self.configuration = configuration
        self.logger = logger
        self.sink = sink
        self.whenStatusChanges = whenStatusChanges
        askForOldestMark = oldestMark
        self.whenFirst = whenFirst
        self.tap = tap
        outboxGauge = OutboxGauge(logger: logger)
        boundaries = WatermarkAudience(loops: sink.loopCount)
        registry = SubscriptionRegistry(principals: principals, mostUndecided: configuration.filters.mostForRow)
        visibility = Visibility(conninfo: configuration.conninfo, logger: logger)
        budget = SharedConditionBudget(configuration.filters)
        asker = ConditionEvaluator(
            conninfo: configuration.conninfo, limits: configuration.filters, budget: budget, logger: logger)
        decider = ConditionDecider(
            conninfo: configuration.conninfo, limits: configuration.filters, budget: budget, logger: logger)
        ahead = DispatchSemaphore(value: Self.batchesAhead)
        desk = RecoveryScheduler(
            principals: principals, binder: { [unowned self] in binder($0, asking: $1) },
            judge: { [unowned self] in try judge($0, $1, &$2) },
            send: { [sink] id, steps, whenTaken in sink.recovery(id, steps, whenTaken: whenTaken ?? {}) },
            whenTaken: { [unowned self] id in
                feed.withLock { $0 }?.perform { _ in self.desk?.taken(id) }
            })
    }

    /// Starts reading. Once.
    package func start() {
        let feed = ChangeFeed(configuration: configuration, logger: logger, consumer: self)
        self.feed.withLock { $0 = feed }
        feed.start()
    }

    /// Stores the cursor and joins the feed's thread. The loops must still turn: the feed may be waiting for them.
    package func stop() {
        decider.stop()
        feed.withLock { $0 }?.stop()
        // Each holds the other.
        feed.withLock { $0 = nil }
    }

    /// From any thread.
    package var visibilityStatistics: VisibilityStatistics { decisions.withLock { $0 } }

    /// Of the feed; nil before the start and after the end.
    package var status: FeedStatus? { feed.withLock { $0?.status } }

    /// As it was found a moment ago; nil until the second time that somebody asks.
    package var outbox: OutboxFigures? { feed.withLock { $0 }.flatMap { outboxGauge.latest(asking: $0) } }

    /// Changes that wait until Postgres has decided filters; others do not wait for them. From any thread.
    package var undecidedChanges: Int { undecidedCount.withLock { $0 } }

    /// Filters that were given up, by the reason. From any thread.
    package var filterEnds: [FilterEnd: Int] { budget.ends }

    /// Statements of this process that were not waited for any longer, and cancelled. From any thread.
    package var abandonedStatements: Int { AbandonedStatements.shared.total }

    package var statistics: FeedStatistics? { feed.withLock { $0 }?.statistics }

    /// `ChangeFeed.behind`. From any thread.
    package var behind: Duration? { feed.withLock { $0 }?.behind }

    // MARK: From the loops

    package func subscribe(_ id: ChangeGroupID, _ subscription: ChangeSubscription) {
        let feed = feed.withLock { $0 }
        feed?.perform { [weak feed] context in
            switch self.registry.add(id, subscription) {
            case .known(let outcome): self.sink.changeSubscription(id, is: outcome)
            case .needsBinding(let definition):
                // What Postgres has to be asked about is asked between two windows; all else is settled here and now.
                if self.bindAtOnce(definition, context.catalog) { return }
                feed?.performWhenIdle { context in self.bind(definition, context) }
            }
        }
    }

    package func unsubscribe(_ id: ChangeGroupID) {
        feed.withLock { $0 }?.perform { _ in self.registry.remove(id) }
    }

    package func admit(_ claims: Claims, to id: ChangeGroupID) {
        feed.withLock { $0 }?.perform { _ in self.registry.admit(claims, to: id) }
    }

    package func withdraw(_ claims: Claims, from id: ChangeGroupID) {
        feed.withLock { $0 }?.perform { _ in self.registry.withdraw(claims, from: id) }
    }

    package func recover(_ id: RecoveryID, _ question: RecoveryQuestion) {
        feed.withLock { $0 }?.perform { context in
            guard context.status == .ready, let wanted = self.registry.definition(of: question.group) else {
                return self.sink.recovery(id, [.unavailable], whenTaken: {})
            }
            self.desk?.add(id, question, wanted)
        }
    }

    package func abandon(_ id: RecoveryID) {
        feed.withLock { $0 }?.perform { _ in self.desk?.abandon(id) }
    }

    /// Sees to it that the list of who was served (`SessionWriter`) does not count as complete any more, on the feed's own
    /// connection: where that does not work either, no changes flow or nothing can be written.
    ///
    /// - Parameter whenDone: is told on the feed's thread whether it certainly does not count.
    package func withdrawSessionList(whenDone: @escaping @Sendable (Bool) -> Void) {
        guard let feed = feed.withLock({ $0 }) else { return whenDone(false) }
        feed.performWhenIdle { [self] context in
            guard context.canQuery else { return whenDone(false) }
            do {
                let isMoved = try !context.query(SQL.withdrawList, [configuration.node]).isEmpty
                isListStuck = false
                whenDone(isMoved)
            } catch {
                if !isListStuck {
                    logger.warning(
                        """
                        New clients are refused row changes: that they were served can be written down nowhere, so a hub                         that is killed would forget them. \(error)
                        """)
                }
                isListStuck = true
                whenDone(false)
            }
        }
    }

    /// Settles a definition by what is known here and now. False where more has to be known.
    private func bindAtOnce(_ definition: Int, _ catalog: Catalog) -> Bool {
        let binder = binder(catalog, asking: nil)
        guard let answers = registry.bind(definition, with: binder, isLastTry: false) else { return false }
        tell(answers)
        return true
    }

    /// Settles a definition by what Postgres says now. While the database is away it fails for the time being, and is
    /// tried again when the database is back.
    private func bind(_ definition: Int, _ context: FeedContext) {
        let ask: SubscriptionBinder.Ask? = context.canQuery ? { try context.query($0) } : nil
        let known = binder(context.catalog, asking: ask)
        if let answers = registry.bind(definition, with: known, isLastTry: false) { return tell(answers) }
        var catalog = context.catalog
        do {
            let role = registry.definition(definition)?.role
            if context.canQuery { catalog = try context.currentCatalog(knowing: role.map { [$0] } ?? []) }
        } catch {
            logger.debug("the catalog could not be read for a subscription: \(error)")
        }
        tell(registry.bind(definition, with: binder(catalog, asking: ask), isLastTry: true) ?? [])
    }

    /// - Parameter ask: where the feed may be asked; nil where nobody may be asked now.
    private func binder(_ catalog: Catalog, asking ask: SubscriptionBinder.Ask?) -> SubscriptionBinder {
        var binder = SubscriptionBinder(catalog: catalog, ask: ask)
        if ask != nil { binder.validate = { [unowned self] in try asker.validate($0) } }
        binder.refuses = { [budget] filter, table in
            budget.use { $0.refuses(filter, on: table.oid, at: .now) }
        }
        return binder
    }

    func tell(_ answers: [(ChangeGroupID, ChangeSubscriptionOutcome)]) {
        for (id, outcome) in answers { sink.changeSubscription(id, is: outcome) }
    }

    // MARK: From the feed

    package func feedDidBecomeReady(_ catalog: Catalog) {
        catalogChanged(catalog)
    }

    package func catalogChanged(_ catalog: Catalog) {
        visibility.catalogChanged(catalog)
        desk?.catalogChanged(catalog)
        // At once where it can be: the window that brought the news is read again, and a right that was given counts in it.
        let toBind = registry.catalogChanged(catalog).filter { !bindAtOnce($0, catalog) }
        guard !toBind.isEmpty else { return }
        feed.withLock { $0 }?.performWhenIdle { context in
            for definition in toBind where !self.bindAtOnce(definition, context.catalog) {
                self.bind(definition, context)
            }
        }
    }

    package func statusChanged(_ status: FeedStatus) {
        if status != .ready { desk?.databaseIsAway() }
        sink.feed(isReady: status == .ready)
        whenStatusChanges(status)
    }

    package func membersChanged(_ tables: Set<UInt32>) {
        visibility.membersChanged(tables)
    }

    package var recoveries: RecoveryScheduler? { desk }

    package var oldestMark: Int? { askForOldestMark() }

    package func nobodyIsFromBefore() { whenFirst() }

    package var observed: (taken: Int, settled: Int) {
        // In this order: what is taken in between must not count as settled.
        guard let tap else { return (0, 0) }
        let settled = tap.settled
        return (tap.taken, settled)
    }

    package func windowBegan(_ cursors: CursorWindow) { self.cursors = cursors }

    package func pollEnded() throws {
        try takeDecisions()
        guard let catalog = registry.catalog, postponed.isDue(at: .now) else { return }
        let items = postponed.items
        var round = DeliveryBatch(items, catalog: catalog)
        try match(&round)
        try round.judge(for: registry, by: &visibility)
        let loops = round.events(for: registry, loops: sink.loopCount, encodingWith: &encoder, beside: &postponed)
        postponed.settle(items.indices.map { round.postponed[$0] ?? [] })
        send(loops)
    }

    package func marked(_ mark: Int) {
        // Who is told that it has all up to here must not lack what waits.
        guard postponed.isEmpty else { return }
        guard undecided.isEmpty else { return undecided.hold(mark) }
        tell(ofMark: mark)
    }

    func tell(ofMark mark: Int) {
        guard postponed.isEmpty else { return }
        for loop in boundaries.loops(toHearOf: mark, at: .now) {
            sink.deliver([.boundary(mark)], to: loop, whenTaken: {})
        }
    }

    package func changesAreGone(upTo pruned: Snapshot) {
        desk?.changesAreGone(upTo: pruned)
        for loop in 0..<sink.loopCount { sink.deliver([.gap], to: loop, whenTaken: {}) }
    }

    /// What is for whom of what members missed.
    private func judge(
        _ entries: [FeedEntry], _ gate: RecoveryAudience, _ registry: inout SubscriptionRegistry
    ) throws -> RecoveryJudgement {
        guard let catalog = registry.catalog else { return RecoveryJudgement() }
        var round = DeliveryBatch(entries, catalog: catalog, gate: gate)
        var unbound: Set<ChangeGroupID> = []
        for end in try round.match(in: &registry, asking: { try asker.answers(to: $0) }) {
            guard let definition = registry.definition(end.definition) else { continue }
            unbound.formUnion(definition.groups.keys)
            tell(self.registry.end(end.binding, of: definition.key, because: end.reason))
        }
        try round.judge(for: registry, by: &visibility)
        let loops = round.events(for: registry, loops: sink.loopCount, encodingWith: &encoder, beside: &postponed)
        let deliveries = loops.joined().compactMap { if case .change(let delivery) = $0 { delivery } else { nil } }
        return RecoveryJudgement(deliveries: deliveries, unbound: unbound, undecided: round.failed)
    }

    package func consume(_ entries: [FeedEntry]) throws {
        try makeRoom()
        guard let catalog = registry.catalog else { return }
        var round = DeliveryBatch(entries, catalog: catalog, cursors: cursors)
        var later: [UndecidedChanges.Item] = []
        if !registry.isEmpty {
            later = round.match(in: &registry, behind: undecided)
            tellOfEndings()
            try round.judge(for: registry, by: &visibility)
            let decided = visibility.statistics
            decisions.withLock { $0 = decided }
        }
        decideLater(later)
        var loops = round.events(for: registry, loops: sink.loopCount, encodingWith: &encoder, beside: &postponed)
        announceWaiting(beside: round, to: &loops)
        for (place, members) in round.postponed.sorted(by: { $0.key < $1.key }) {
            guard case .change(let change) = entries[place] else { continue }
            postponed.add(change, cursor: cursors?.cursor(change.id) ?? "", for: members, at: .now)
        }
        send(loops)
        guard let tap else { return }
        let changes = entries.compactMap { if case .change(let change) = $0 { change } else { nil } }
        if !changes.isEmpty { tap.take(changes) }
    }

    /// Matches a round, and tells those of whose filters the database did not decide one.
    private func match(_ round: inout DeliveryBatch) throws {
        for end in try round.match(in: &registry, asking: { try asker.answers(to: $0) }) {
            guard let definition = registry.definition(end.definition) else { continue }
            tell(registry.end(end.binding, of: definition.key, because: end.reason))
        }
    }

    func send(_ loops: [[FeedEvent]]) {
        for (loop, events) in loops.enumerated() where !events.isEmpty {
            ahead.wait()
            boundaries.delivered(to: loop)
            sink.deliver(events, to: loop) { [ahead] in ahead.signal() }
        }
    }
}
