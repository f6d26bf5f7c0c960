/// Finds the subscriptions that a change matches.
///
/// A group receives its frames together (a channel of a connection, or many channels with the same parameters); the caller
/// numbers the groups. The cost of adding or removing a group does not depend on their number. A filter with an equality or
/// an `in` list is found by the value in the row; the other filters of the table are evaluated one by one.
package struct SubscriptionIndex: Sendable {
    private struct Group {
        let bindings: [BoundBinding]
        /// The entries of the group's bindings for each table, by the table's oid.
        var entries: [UInt32: [Int32]] = [:]
    }

    private var groups: [Int: Group] = [:]
    /// The groups with a wildcard, which follow the catalog.
    private var wildcards: Set<Int> = []
    private var tables: [UInt32: TableIndex] = [:]
    private var catalog: [UInt32: Table] = [:]
    private var entries = EntryTable()

    package init() {}

    package var groupCount: Int { groups.count }

    // MARK: Groups

    /// Adds a group, replacing any group with the same number.
    package mutating func addBindings(_ bindings: [BoundBinding], as group: Int) {
        removeGroup(group)
        groups[group] = Group(bindings: bindings)
        var oids: Set<UInt32> = []
        for binding in bindings {
            switch binding.target {
            case .table(let oid): oids.insert(oid)
            case .pattern(let pattern):
                wildcards.insert(group)
                oids.formUnion(catalog.values.filter(pattern.includes).map(\.oid))
            }
        }
        for oid in oids { linkGroup(group, to: oid) }
    }

    package mutating func removeGroup(_ group: Int) {
        guard let removed = groups.removeValue(forKey: group) else { return }
        wildcards.remove(group)
        for (oid, numbers) in removed.entries { unlinkEntries(numbers, from: oid) }
    }

    /// Removes some of a group's bindings and keeps the others.
    package mutating func remove(bindings ids: Set<Int>, of group: Int) {
        guard let bindings = groups[group]?.bindings else { return }
        addBindings(bindings.filter { !ids.contains($0.id) }, as: group)
    }

    // MARK: The catalog

    /// Sets the watched tables. Wildcards follow at once. The groups returned have a filter that was bound to an older
    /// version of a table, or a wildcard with a filter that now includes a table it was not bound to: bind and add them
    /// again. Until then they match as they were bound.
    package mutating func setTables(_ watched: [Table]) -> Set<Int> {
        let before = catalog
        catalog = Dictionary(watched.map { ($0.oid, $0) }, uniquingKeysWith: { $1 })
        var stale: Set<Int> = []
        for (number, group) in groups {
            for binding in group.bindings where isStale(binding) { stale.insert(number) }
        }
        let changed = Set(before.keys).union(catalog.keys).filter { oid in
            guard let one = before[oid], let other = catalog[oid] else { return true }
            return !one.isNamed(as: other)
        }
        for group in wildcards {
            for oid in changed {
                if let numbers = groups[group]?.entries.removeValue(forKey: oid) { unlinkEntries(numbers, from: oid) }
                linkGroup(group, to: oid)
            }
        }
        return stale
    }

    private func isStale(_ binding: BoundBinding) -> Bool {
        let isBoundOtherwise = binding.filters.values.contains { filter in
            guard let now = catalog[filter.table.oid] else { return false }
            return now !== filter.table && now.columns != filter.table.columns
        }
        guard !isBoundOtherwise, case .pattern(let pattern) = binding.target, !binding.filters.isEmpty else {
            return isBoundOtherwise
        }
        return catalog.values.contains { pattern.includes($0) && binding.filters[$0.oid] == nil }
    }

    /// The rows that can concern these groups; nil if a row of any table may.
    package func prefilter(of groups: some Sequence<Int>, mostTexts: Int) -> RowPrefilter? {
        var prefilter = RowPrefilter(mostTexts: mostTexts)
        for number in groups {
            guard let group = self.groups[number] else { return nil }
            for binding in group.bindings {
                guard case .table = binding.target else { return nil }
                for filter in binding.filters.values { prefilter.addFilter(filter) }
            }
        }
        return prefilter
    }

    // MARK: Links

    private mutating func linkGroup(_ number: Int, to oid: UInt32) {
        guard let group = groups[number] else { return }
        // Collects the whole group first, so that siblings are known before any entry is made.
        var found: [(binding: BoundBinding, filter: BoundFilter)] = []
        for binding in group.bindings {
            switch binding.target {
            case .table(oid): if let filter = binding.filters[oid] { found.append((binding, filter)) }
            case .table: break
            case .pattern:
                if let table = catalog[oid], let filter = binding.filter(for: table) { found.append((binding, filter)) }
            }
        }
        guard !found.isEmpty else { return }
        var numbers: [Int32] = []
        for (binding, filter) in found {
            numbers.append(linkBinding(binding, filter, of: number, to: oid, hasSiblings: found.count > 1))
        }
        groups[number]?.entries[oid] = numbers
    }

    private mutating func linkBinding(
        _ binding: BoundBinding, _ filter: BoundFilter, of group: Int, to oid: UInt32, hasSiblings: Bool
    ) -> Int32 {
        // An equality leads to fewer rows than a list does.
        let equalities = filter.conditions.indices.filter { filter.conditions[$0].equalTo != nil }
        let chosen = equalities.min {
            (filter.conditions[$0].equalTo?.count ?? 0) < (filter.conditions[$1].equalTo?.count ?? 0)
        }
        var rest = filter.conditions
        if let chosen { rest.remove(at: chosen) }
        let entry = entries.insert(
            EntryTable.Entry(
                group: group, id: binding.id, selection: binding.selection, hasSiblings: hasSiblings, filter: filter,
                residual: BoundFilter(table: filter.table, conditions: rest),
                layout: tables[oid, default: TableIndex()].layout(of: filter.table)))
        for operation in RowChange.Operation.all where binding.events.contains(EventSet(operation)) {
            tables[oid, default: TableIndex()][operation].linkEntry(
                entry, by: chosen.map { filter.conditions[$0] }, in: &entries)
        }
        return entry
    }

    private mutating func unlinkEntries(_ numbers: [Int32], from oid: UInt32) {
        for number in numbers {
            for list in entries.remove(number) {
                for operation in RowChange.Operation.all where tables[oid]?[operation].dropList(list) == true { break }
                entries.removeList(list)
            }
        }
        if tables[oid]?.isEmpty == true { tables[oid] = nil }
    }

    // MARK: Matching

    /// True if any subscription is about the table, as far as the catalog has it.
    package func hasSubscriptions(_ table: UInt32) -> Bool { tables[table] != nil }

    /// The recipients of a change. Adds a table that the catalog does not have yet, so that no wildcard misses its first
    /// rows.
    package mutating func match(_ change: RowChange) -> Matches {
        let oid = change.table.oid
        if catalog[oid] == nil {
            catalog[oid] = change.table
            for group in wildcards { linkGroup(group, to: oid) }
        }
        guard let layout = tables[oid]?.layout(of: change.table), let table = tables[oid],
            !table[change.operation].isEmpty
        else { return Matches() }
        var search = IndexSearch(change: change, table: table.layouts[layout], layout: layout)
        return search.findMatches(on: table[change.operation], entries)
    }
}

/// A binding of a channel, with its filter bound to its tables.
package struct BoundBinding: Sendable {
    /// The client's id for the binding, which frames contain.
    package let id: Int
    package let events: EventSet
    package let selection: Selection?
    let target: Target
    /// The filter as bound to each table, by the table's oid.
    let filters: [UInt32: BoundFilter]

    enum Target: Sendable {
        case table(UInt32)
        case pattern(TablePattern)
    }

    /// A binding to one table.
    package init(id: Int, events: EventSet, selection: Selection?, filter: BoundFilter) {
        self.id = id
        self.events = events
        self.selection = selection
        target = .table(filter.table.oid)
        filters = [filter.table.oid: filter]
    }

    /// A binding to all tables that `tables` includes, now and later, without a filter.
    package init(id: Int, events: EventSet, everyRowOf tables: TablePattern) {
        self.id = id
        self.events = events
        selection = nil
        target = .pattern(tables)
        filters = [:]
    }

    /// A binding to several tables by a wildcard with a filter, which was bound to each of them. A table that matches later
    /// is included once the group has been added again with a filter for the table: `SubscriptionIndex.setTables` reports
    /// when.
    package init(id: Int, events: EventSet, tables: TablePattern, filters: [BoundFilter]) {
        self.id = id
        self.events = events
        selection = nil
        target = .pattern(tables)
        self.filters = Dictionary(filters.map { ($0.table.oid, $0) }, uniquingKeysWith: { $1 })
    }

    /// The filter for a table; nil if the binding has none for the table.
    func filter(for table: Table) -> BoundFilter? {
        switch target {
        case .table: filters[table.oid]
        case .pattern(let pattern):
            if !pattern.includes(table) {
                nil
            } else {
                filters.isEmpty ? BoundFilter(everyRowOf: table) : filters[table.oid]
            }
        }
    }
}
