/// A binding of a channel, its filter bound to the tables it is about.
package struct BoundBinding: Sendable {
    /// What the client calls it; frames name it.
    package let id: Int
    package let events: EventSet
    package let selection: Selection?
    let target: Target
    /// By the oid of the table.
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

    /// A binding to several tables by a wildcard with a filter, which was bound to each of them. A table that joins
    /// them later counts once the group has been added again with a filter for it: `SubscriptionIndex.setTables` tells
    /// when.
    package init(id: Int, events: EventSet, tables: TablePattern, filters: [BoundFilter]) {
        self.id = id
        self.events = events
        selection = nil
        target = .pattern(tables)
        self.filters = Dictionary(filters.map { ($0.table.oid, $0) }, uniquingKeysWith: { $1 })
    }

    /// The filter for a table; nil if the binding has none for it.
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
