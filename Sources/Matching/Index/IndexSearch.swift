/// One change on its way through the entries of its table.
struct IndexSearch {
    private let layout: Int
    private var record: RowRecord
    private var matches = Matches()
    /// For groups of which several bindings may match.
    private var merge = DeliveryMerge()

    init(change: RowChange, table: Table, layout: Int) {
        self.layout = layout
        record = RowRecord(change, table: table)
    }

    mutating func run(on index: EventIndex, _ entries: EntryTable) -> Matches {
        for column in index.columns { look(up: column, in: entries) }
        if let scan = index.scan { test(entries.list(scan), in: entries, byResidual: false) }
        matches.deliveries += merge.deliveries
        if !matches.undecided.isEmpty { matches.record = record }
        return matches
    }

    private mutating func look(up index: EventIndex.ColumnIndex, in entries: EntryTable) {
        guard let place = record.table.columns.firstIndex(where: { $0.name == index.column.name }) else { return }
        let column = record.table.columns[place]
        let isSameType = column.comparison == index.column.comparison && column.type == index.column.type
        switch record.value(at: place) {
        case .absent, .null: return
        case .value(let value) where isSameType:
            if let list = index.buckets[value] { test(entries.list(list), in: entries, byResidual: true) }
        case .value, .omitted, .opaque:
            // The value cannot be looked up, so every filter on the column is a candidate. An entry with a list of
            // values stands in several buckets.
            var seen: Set<Int32> = []
            for list in index.buckets.values {
                for entry in entries.list(list).entries where seen.insert(entry).inserted {
                    test(entry, in: entries, byResidual: false)
                }
            }
        }
    }

    private mutating func test(_ list: EntryTable.List, in entries: EntryTable, byResidual: Bool) {
        for entry in list.entries { test(entry, in: entries, byResidual: byResidual) }
    }

    private mutating func test(_ number: Int32, in entries: EntryTable, byResidual: Bool) {
        let entry = entries[number]
        let filter = byResidual ? entry.residual : entry.filter
        let verdict = filter.evaluate(&record, isSameLayout: entry.layout == layout)
        if verdict != .noMatch { note(entry, byResidual: byResidual, verdict) }
    }

    private mutating func note(_ entry: EntryTable.Entry, byResidual: Bool, _ verdict: Verdict) {
        if verdict == .unknown {
            matches.undecided.append(
                Matches.Undecided(entry: entry, isFoundByValue: byResidual, isLasting: entry.layout == layout))
        } else if entry.hasSiblings {
            merge.add(entry.ids[0], to: entry.group, entry.selection)
        } else {
            matches.deliveries.append(
                Matches.Delivery(group: entry.group, selection: entry.selection, ids: entry.ids))
        }
    }
}
