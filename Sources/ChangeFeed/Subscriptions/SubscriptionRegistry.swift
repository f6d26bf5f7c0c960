import Hub

/// Who wants what, and the index that finds them.
struct SubscriptionRegistry: ~Copyable {
    private let trustsRowSecurity: Bool
    private var index = SubscriptionIndex()
    private var encoder = ChangeEncoder()
    private var definitions: [SubscriptionDefinition.Key: SubscriptionDefinition] = [:]
    private var byNumber: [Int: SubscriptionDefinition] = [:]
    private var byGroup: [ChangeGroupID: SubscriptionDefinition] = [:]
    private var lastNumber = 0
    /// The database was reached once, so its tables are known even while it is away.
    private var knowsCatalog = false

    init(trustsRowSecurity: Bool) {
        self.trustsRowSecurity = trustsRowSecurity
    }

    enum Addition {
        case known(ChangeSubscriptionOutcome)
        /// By the definition's number.
        case needsBinding(Int)
    }

    mutating func add(_ id: ChangeGroupID, _ subscription: ChangeSubscription) -> Addition {
        guard knowsCatalog else { return .known(.unavailable) }
        let key = SubscriptionDefinition.Key(bindings: subscription.bindings, role: subscription.role)
        if let definition = definitions[key] {
            definition.groups.append(id)
            byGroup[id] = definition
            // Without an outcome, the binding that is under way answers this group too.
            return definition.outcome.map { .known($0) } ?? .needsBinding(definition.number)
        }
        lastNumber += 1
        let definition = SubscriptionDefinition(
            number: lastNumber, bindings: subscription.bindings, ids: subscription.ids, role: subscription.role)
        definition.groups = [id]
        definitions[key] = definition
        byNumber[definition.number] = definition
        byGroup[id] = definition
        return .needsBinding(definition.number)
    }

    mutating func remove(_ id: ChangeGroupID) {
        guard let definition = byGroup.removeValue(forKey: id) else { return }
        definition.groups.removeAll { $0 == id }
        guard definition.groups.isEmpty else { return }
        definitions[definition.key] = nil
        byNumber[definition.number] = nil
        index.remove(definition.number)
    }

    /// Binds a definition and returns what its groups are to be told; nil where the current catalog,
    /// or Postgres itself, has to be asked first.
    mutating func bind(
        _ number: Int, with binder: SubscriptionBinder, isLastTry: Bool
    ) -> [(ChangeGroupID, ChangeSubscriptionOutcome)]? {
        guard let definition = byNumber[number] else { return [] }
        let outcome: ChangeSubscriptionOutcome
        do {
            index.add(try binder.bind(definition, trustsRowSecurity: trustsRowSecurity), as: definition.number)
            outcome = .live
        } catch .invalid(let message) {
            outcome = .failed(message)
        } catch .refused(let message) {
            // The catalog may be a few seconds old: what it refuses is judged again by the current one.
            guard isLastTry else { return nil }
            outcome = .failed(message)
        } catch {
            guard isLastTry else { return nil }
            // What was live goes on by what it knows.
            if case .live = definition.outcome { return [] }
            outcome = .failed("Unable to subscribe to changes while the database is away; it will be tried again.")
        }
        if case .failed = outcome { index.remove(definition.number) }
        definition.outcome = outcome
        return definition.groups.map { ($0, outcome) }
    }

    /// Takes over the tables and returns the definitions that are to be bound again: those that failed, and those whose
    /// tables were altered.
    mutating func catalogChanged(_ catalog: Catalog) -> [Int] {
        knowsCatalog = true
        let stale = index.setTables(catalog.tables)
        return byNumber.values.filter { definition in
            if stale.contains(definition.number) { return true }
            switch definition.outcome {
            case .failed: return true
            case .live: return !isServed(definition, by: catalog) || isBarred(definition, by: catalog)
            default: return false
            }
        }.map(\.number)
    }

    /// Whether all the tables that a definition names are still watched.
    private func isServed(_ definition: SubscriptionDefinition, by catalog: Catalog) -> Bool {
        definition.bindings.allSatisfy { binding in
            guard case .success(let parameters) = binding.parameters, let schema = parameters.tables.schema,
                let name = parameters.tables.name
            else { return true }
            return catalog.table(schema: schema, name: name) != nil
        }
    }

    /// Whether row level security, turned on meanwhile, may end what is live.
    private func isBarred(_ definition: SubscriptionDefinition, by catalog: Catalog) -> Bool {
        guard !trustsRowSecurity, definition.role != SubscriptionBinder.roleBeyondPolicies else { return false }
        return definition.bindings.contains { binding in
            guard case .success(let parameters) = binding.parameters else { return false }
            return catalog.tables.contains { $0.hasRowSecurity && parameters.tables.includes($0) }
        }
    }

    // MARK: Matching

    /// What each loop is to deliver for these changes, in their order. `ask` answers what only Postgres knows, for all
    /// the changes in one round trip.
    mutating func deliveries(
        of changes: [RowChange], asking ask: ([PostgresCondition]) -> [Bool]
    ) -> [Int: [ChangeDelivery]] {
        guard !byNumber.isEmpty else { return [:] }
        var all: [(change: RowChange, matches: Matches)] = []
        var conditions: [PostgresCondition] = []
        for change in changes {
            let matches = index.match(change)
            if matches.isEmpty { continue }
            conditions += matches.undecided.map(\.condition)
            all.append((change, matches))
        }
        var answers = conditions.isEmpty ? [] : ask(conditions)[...]
        var loops: [Int: [ChangeDelivery]] = [:]
        for (change, matches) in all {
            let mine = Array(answers.prefix(matches.undecided.count))
            answers = answers.dropFirst(mine.count)
            let deliveries = mine.isEmpty ? matches.deliveries : matches.settled(by: mine)
            append(deliveries, of: change, to: &loops)
        }
        return loops
    }

    private mutating func append(
        _ deliveries: [Matches.Delivery], of change: RowChange, to loops: inout [Int: [ChangeDelivery]]
    ) {
        // Nearly always there is one selection, so a list is the quickest memory of what was encoded.
        var encoded: [(selection: Selection?, data: [UInt8])] = []
        for delivery in deliveries {
            guard let definition = byNumber[delivery.group] else { continue }
            let data: [UInt8]
            if let known = encoded.first(where: { $0.selection == delivery.selection }) {
                data = known.data
            } else {
                data = encoder.data(for: change, selection: delivery.selection)
                encoded.append((delivery.selection, data))
            }
            for group in definition.groups {
                loops[group.loop, default: []].append(
                    ChangeDelivery(group: group, operation: change.operation, ids: delivery.ids, data: data))
            }
        }
    }
}
