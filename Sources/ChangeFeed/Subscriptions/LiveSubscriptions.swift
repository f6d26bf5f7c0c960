import Hub
import Logging
import Matching

/// The live subscribers: takes subscriptions, binds their filters to tables, and tells their groups the outcomes.
///
/// Unchecked: confined to the feed's thread, on which the feed's work and the consumer's methods run, one at a time.
final class LiveSubscriptions: @unchecked Sendable {
    var registry: SubscriptionRegistry
    private var evaluator: ConditionEvaluator
    private let budget: SharedConditionBudget
    private let inbox: FeedInbox
    private let sink: any ChangeSink
    private let logger: Logger

    init(
        _ configuration: FeedConfiguration, principals: PrincipalTable, budget: SharedConditionBudget, inbox: FeedInbox,
        sink: any ChangeSink, logger: Logger
    ) {
        registry = SubscriptionRegistry(principals: principals, mostUndecided: configuration.filters.mostForRow)
        evaluator = ConditionEvaluator(
            conninfo: configuration.conninfo, limits: configuration.filters, budget: budget, logger: logger)
        self.budget = budget
        self.inbox = inbox
        self.sink = sink
        self.logger = logger
    }

    /// Postgres' answers about conditions; waits for them.
    func answers(to conditions: [PostgresCondition]) throws -> ConditionEvaluator.Answers {
        try evaluator.answers(to: conditions)
    }

    // MARK: Binding

    func subscribe(_ id: ChangeGroupID, _ subscription: ChangeSubscription, _ context: FeedContext) {
        switch registry.addGroup(id, subscription) {
        case .known(let outcome): sink.changeSubscription(id, is: outcome)
        case .needsBinding(let definition):
            // Questions to Postgres are asked between two windows; everything else is settled at once.
            if bindAtOnce(definition, context.catalog) { return }
            inbox.postIdleWork { self.bindDefinition(definition, $0) }
        }
    }

    /// At once if possible: the window that brought the news is read again, and a new right applies to it.
    func catalogChanged(_ catalog: Catalog) {
        let toBind = registry.catalogChanged(catalog).filter { !bindAtOnce($0, catalog) }
        guard !toBind.isEmpty else { return }
        inbox.postIdleWork { context in
            for definition in toBind where !self.bindAtOnce(definition, context.catalog) {
                self.bindDefinition(definition, context)
            }
        }
    }

    /// Settles a definition by what is known now. Returns false if more has to be known.
    private func bindAtOnce(_ definition: Int, _ catalog: Catalog) -> Bool {
        let binder = makeBinder(catalog, asking: nil)
        guard let answers = registry.bindDefinition(definition, with: binder, isLastTry: false) else { return false }
        sendOutcomes(answers)
        return true
    }

    /// Settles a definition by what Postgres says now. While the database is away this fails for the time being, and is
    /// tried again when the database is back.
    private func bindDefinition(_ definition: Int, _ context: FeedContext) {
        let ask: SubscriptionBinder.Ask? = context.canQuery ? { try context.query($0) } : nil
        let known = makeBinder(context.catalog, asking: ask)
        if let answers = registry.bindDefinition(definition, with: known, isLastTry: false) {
            return sendOutcomes(answers)
        }
        var catalog = context.catalog
        do {
            let role = registry.definition(definition)?.role
            if context.canQuery { catalog = try context.currentCatalog(knowing: role.map { [$0] } ?? []) }
        } catch {
            logger.debug("the catalog could not be read for a subscription: \(error)")
        }
        sendOutcomes(registry.bindDefinition(definition, with: makeBinder(catalog, asking: ask), isLastTry: true) ?? [])
    }

    /// - Parameter ask: asks Postgres on the feed's session; nil if no question may be asked now.
    func makeBinder(_ catalog: Catalog, asking ask: SubscriptionBinder.Ask?) -> SubscriptionBinder {
        var binder = SubscriptionBinder(catalog: catalog, ask: ask)
        if ask != nil { binder.validate = { [unowned self] in try evaluator.validateValues($0) } }
        binder.refuses = { [budget] filter, table in
            budget.withBudget { $0.refusesFilter(filter, on: table.oid, at: .now) }
        }
        return binder
    }

    // MARK: Ending

    /// Ends one filter for all groups of the same definition; their other filters stay.
    func endFilter(_ binding: Int, of definition: SubscriptionDefinition.Key, because reason: String) {
        sendOutcomes(registry.endFilter(binding, of: definition, because: reason))
    }

    /// Ends filters that were not decided.
    func endFilters(_ filters: Set<GivenUpFilter>) {
        for filter in filters {
            guard let definition = registry.definition(filter.definition) else { continue }
            endFilter(filter.binding, of: definition.key, because: filter.reason)
        }
    }

    /// Tells the groups whose filters ended because there were too many.
    func tellOfEndings() {
        for ending in registry.takeEndings() {
            budget.countEnds(.tooMany, ending.bindings)
            logger.warning(
                """
                \(ending.bindings) filters of a channel are not served any more: Postgres would have to decide more of \
                them than it may (limits.undecided_filters) or can, and this channel has the most.
                """)
            sendOutcomes(ending.groups.map { ($0, ending.outcome) })
        }
    }

    /// The messages to subscribers of tables whose changes could not be recorded; their subscriptions continue.
    func lossMessages(of tables: Set<UInt32>) -> [(ChangeGroupID, message: String)] {
        (registry.catalog?.tables ?? []).filter { tables.contains($0.oid) }.flatMap { table in
            let name = "\(table.schema).\(table.name)"
            logger.warning(
                "Changes of \(name) could not be recorded: its subscribers are told to load their data again.")
            let message = "ChangesLost: Changes of \(name) could not be recorded; load the data again"
            return registry.groups(hearing: table).map { ($0, message) }
        }
    }

    private func sendOutcomes(_ answers: [(ChangeGroupID, ChangeSubscriptionOutcome)]) {
        for (id, outcome) in answers { sink.changeSubscription(id, is: outcome) }
    }
}

/// A filter that Postgres did not decide.
struct GivenUpFilter: Hashable {
    /// The definition's number, and the binding's id in the definition.
    let definition: Int
    let binding: Int
    let reason: String
}
