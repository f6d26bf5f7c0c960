import Hub
import Matching
import Wire

/// All subscriptions, and the index that finds them.
struct SubscriptionRegistry: ~Copyable {
    private var index = SubscriptionIndex()
    private let principals: PrincipalTable
    private var definitions: [SubscriptionDefinition.Key: SubscriptionDefinition] = [:]
    private var byNumber: [Int: SubscriptionDefinition] = [:]
    private var byGroup: [ChangeGroupID: SubscriptionDefinition] = [:]
    private var lastNumber = 0
    /// Nil until the database was first reached; after that the tables stay known even while it is away.
    private(set) var catalog: Catalog?
    /// Limit of filters that Postgres may have to decide for one row.
    private let mostUndecided: Int
    /// Filters that ended because there were too many, until taken.
    private var endings: [Ending] = []

    /// Groups with filters that are no longer served, and the outcome to report.
    struct Ending {
        let groups: [ChangeGroupID]
        let outcome: ChangeSubscriptionOutcome
        /// Number of filters.
        let bindings: Int
    }

    init(principals: PrincipalTable, mostUndecided: Int = .max) {
        self.principals = principals
        self.mostUndecided = mostUndecided
    }

    enum Addition {
        case known(ChangeSubscriptionOutcome)
        /// By the definition's number.
        case needsBinding(Int)
    }

    mutating func addGroup(_ id: ChangeGroupID, _ subscription: ChangeSubscription) -> Addition {
        guard catalog != nil else { return .known(.unavailable) }
        let key = SubscriptionDefinition.Key(bindings: subscription.bindings, role: subscription.role)
        if let definition = definitions[key] {
            definition.groups[id] = [:]
            byGroup[id] = definition
            // Without an outcome, the binding under way will answer this group too.
            return definition.outcome.map { .known($0) } ?? .needsBinding(definition.number)
        }
        lastNumber += 1
        let definition = SubscriptionDefinition(
            number: lastNumber, bindings: subscription.bindings, ids: subscription.ids, role: subscription.role)
        definition.groups[id] = [:]
        definitions[key] = definition
        byNumber[definition.number] = definition
        byGroup[id] = definition
        return .needsBinding(definition.number)
    }

    mutating func removeGroup(_ id: ChangeGroupID) {
        guard let definition = byGroup.removeValue(forKey: id) else { return }
        for principal in definition.groups.removeValue(forKey: id)?.values ?? [:].values {
            principals.releasePrincipal(principal)
        }
        guard definition.groups.isEmpty else { return }
        definitions[definition.key] = nil
        byNumber[definition.number] = nil
        index.removeGroup(definition.number)
    }

    mutating func admitClaims(_ claims: Claims, to id: ChangeGroupID) {
        guard let definition = byGroup[id], definition.groups[id]?[claims] == nil else { return }
        definition.groups[id]?[claims] = principals.retainPrincipal(claims)
    }

    mutating func withdrawClaims(_ claims: Claims, from id: ChangeGroupID) {
        if let principal = byGroup[id]?.groups[id]?.removeValue(forKey: claims) {
            principals.releasePrincipal(principal)
        }
    }

    func definition(_ number: Int) -> SubscriptionDefinition? { byNumber[number] }

    func definition(of group: ChangeGroupID) -> SubscriptionDefinition? { byGroup[group] }

    /// The groups in which a user with these claims is subscribed to a table.
    func groups(of claims: Claims, as role: Name, hearing table: UInt32) -> [ChangeGroupID] {
        guard let table = catalog?.table(table) else { return [] }
        return byNumber.values.filter { $0.role == role && $0.coversTable(table) }.flatMap { definition in
            definition.groups.filter { $0.value[claims] != nil }.keys
        }
    }

    /// The groups that are served changes of a table, which their role may read.
    func groups(hearing table: Table) -> [ChangeGroupID] {
        byNumber.values.filter { definition in
            switch definition.outcome {
            case .live, .partly:
                definition.coversTable(table) && catalog?.access(of: definition.role)?.table(table.oid) != nil
            default: false
            }
        }.flatMap(\.groups.keys)
    }

    var isEmpty: Bool { byNumber.isEmpty }

    /// True if a change of the table may have a subscriber.
    func hasSubscriptions(_ table: UInt32) -> Bool { index.hasSubscriptions(table) }

    /// The rows that can concern these groups; nil if a row of any table may, or if one of the groups is not bound.
    func prefilter(of groups: some Sequence<ChangeGroupID>, mostTexts: Int) -> RowPrefilter? {
        var numbers: Set<Int> = []
        for group in groups {
            guard let definition = byGroup[group] else { return nil }
            switch definition.outcome {
            case .live, .partly: numbers.insert(definition.number)
            default: return nil
            }
        }
        return index.prefilter(of: numbers, mostTexts: mostTexts)
    }

    /// The recipients of a change. This bounds the cost of a row, whatever the subscriptions: if Postgres would have to
    /// decide more filters for it than allowed, filters of the groups with the most end, and `takeEndings` returns them.
    mutating func match(_ change: RowChange) -> Matches {
        let matches = index.match(change)
        guard matches.undecided.count > mostUndecided else { return matches }
        var tally = UndecidedCount()
        tally.countUndecided(matches)
        return endExcess(of: tally, over: mostUndecided) == nil ? matches : index.match(change)
    }

    /// Ends filters so that no more than `most` of the counted questions are left.
    ///
    /// - Returns: the definitions that lost filters; nil if none did.
    mutating func endExcess(of tally: UndecidedCount, over most: Int) -> Set<Int>? {
        let excess = tally.excess(over: most) { byNumber[$0]?.memberCount ?? 0 }
        for (number, bindings) in excess {
            guard let definition = byNumber[number] else { continue }
            index.remove(bindings: bindings, of: number)
            let message = SubscriptionBinder.endNotice(bindings.count)
            for binding in bindings { definition.ended[binding] = message }
            endings.append(
                Ending(
                    groups: Array(definition.groups.keys), outcome: definition.addComplaint(message),
                    bindings: bindings.count))
        }
        return excess.isEmpty ? nil : Set(excess.keys)
    }

    mutating func takeEndings() -> [Ending] {
        defer { endings = [] }
        return endings
    }

    /// Binds a definition and returns the outcomes for its groups; nil if the current catalog, or Postgres itself, has to
    /// be asked first.
    mutating func bindDefinition(
        _ number: Int, with binder: SubscriptionBinder, isLastTry: Bool
    ) -> [(ChangeGroupID, ChangeSubscriptionOutcome)]? {
        guard let definition = byNumber[number] else { return [] }
        let outcome: ChangeSubscriptionOutcome
        do {
            var bound = try binder.bindDefinition(definition)
            // The catalog may be a few seconds old: whatever it refuses is judged again by the current one.
            if bound.isRefused, !isLastTry { return nil }
            bound.leaveOut(definition.ended)
            index.addBindings(bound.bindings, as: definition.number)
            outcome = bound.outcome
        } catch .invalid(let message) {
            outcome = .failed(message)
        } catch .refused(let message) {
            guard isLastTry else { return nil }
            outcome = .failed(message)
        } catch {
            guard isLastTry else { return nil }
            // A definition with an outcome continues with what is known. Clients without one come again; for some of them,
            // a failure followed by success would mean the end of their channel.
            guard definition.outcome == nil else { return [] }
            return definition.groups.keys.map { ($0, .unavailable) }
        }
        if case .failed = outcome { index.removeGroup(definition.number) }
        definition.outcome = outcome
        return definition.groups.keys.map { ($0, outcome) }
    }

    /// Ends one binding of a definition, for all groups of the definition; its other bindings stay.
    ///
    /// - Returns: the outcomes for its groups.
    mutating func endFilter(
        _ binding: Int, of definition: SubscriptionDefinition.Key, because reason: String
    ) -> [(ChangeGroupID, ChangeSubscriptionOutcome)] {
        guard let definition = definitions[definition] else { return [] }
        index.remove(bindings: [binding], of: definition.number)
        guard let place = definition.ids.firstIndex(of: binding),
            case .success(let parameters) = definition.bindings[place].parameters
        else { return [] }
        let message = SubscriptionBinder.endNotice(parameters.filter, parameters.tables, because: reason)
        if reason == ConditionEvaluator.tookTooLong { definition.ended[binding] = message }
        let outcome = definition.addComplaint(message, besides: binding)
        return definition.groups.keys.map { ($0, outcome) }
    }

    /// Takes over the tables and returns the definitions that must be bound again: those that failed, those whose tables
    /// were altered, and those whose role may read more or less than before.
    mutating func catalogChanged(_ catalog: Catalog) -> [Int] {
        let before = self.catalog
        self.catalog = catalog
        let stale = index.setTables(catalog.tables)
        return byNumber.values.filter { definition in
            if stale.contains(definition.number) { return true }
            switch definition.outcome {
            case .failed, .partly: return true
            case .live:
                return !isServed(definition, by: catalog) || before?.faults != catalog.faults
                    || before?.access(of: definition.role) != catalog.access(of: definition.role)
            default: return false
            }
        }.map(\.number)
    }

    /// True if all the tables that a definition names are still watched.
    private func isServed(_ definition: SubscriptionDefinition, by catalog: Catalog) -> Bool {
        definition.bindings.allSatisfy { binding in
            guard case .success(let parameters) = binding.parameters, let schema = parameters.tables.schema,
                let name = parameters.tables.name
            else { return true }
            return catalog.table(schema: schema, name: name) != nil
        }
    }
}
