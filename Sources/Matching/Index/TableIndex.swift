import Wire

/// The entries of one table, by the operation that they subscribe to.
struct TableIndex: Sendable {
    private var insert = EventIndex()
    private var update = EventIndex()
    private var delete = EventIndex()
    /// The column layouts that the table has had since filters were bound to it. Filters and records carry a layout's
    /// index, which saves comparing them column by column.
    private(set) var layouts: [Table] = []
    /// The table as of the last change, and its layout.
    private var last: (table: Table, layout: Int)?

    subscript(operation: RowChange.Operation) -> EventIndex {
        get {
            switch operation {
            case .insert: insert
            case .update: update
            case .delete: delete
            }
        }
        _modify {
            switch operation {
            case .insert: yield &insert
            case .update: yield &update
            case .delete: yield &delete
            }
        }
    }

    var isEmpty: Bool { insert.isEmpty && update.isEmpty && delete.isEmpty }

    mutating func layout(of table: Table) -> Int {
        if let last, last.table === table { return last.layout }
        let known = layouts.firstIndex { $0.columns == table.columns }
        if known == nil { layouts.append(table) }
        let layout = known ?? layouts.count - 1
        last = (table, layout)
        return layout
    }
}

extension RowChange.Operation {
    static let all: [RowChange.Operation] = [.insert, .update, .delete]
}

/// The entries of one table for one event: those with a value in buckets, the others in a list to scan.
struct EventIndex: Sendable {
    struct ColumnIndex: Sendable {
        /// The column as the filters were bound to it; a column whose type has changed since is another column.
        let column: Column
        var buckets: [ComparedValue: Int32] = [:]
    }

    private(set) var scan: Int32?
    private(set) var columns: [ColumnIndex] = []
    /// The bucket of each list, for dropping the list once it is empty.
    private var owners: [Int32: (column: Name, value: ComparedValue)] = [:]

    var isEmpty: Bool { scan == nil && columns.isEmpty }

    mutating func linkEntry(_ entry: Int32, by equality: BoundCondition?, in table: inout EntryTable) {
        guard let equality, let values = equality.equalTo else {
            let list = scan ?? table.makeList()
            scan = list
            table.linkEntry(entry, to: list)
            return
        }
        let place = columnPlace(of: equality.column)
        for value in Set(values) {
            let list = columns[place].buckets[value] ?? table.makeList()
            columns[place].buckets[value] = list
            owners[list] = (equality.column.name, value)
            table.linkEntry(entry, to: list)
        }
    }

    /// Drops a list that has become empty; returns false if the list is not this index's.
    mutating func dropList(_ list: Int32) -> Bool {
        if scan == list {
            scan = nil
            return true
        }
        guard let owner = owners.removeValue(forKey: list) else { return false }
        for place in columns.indices where columns[place].column.name == owner.column {
            guard columns[place].buckets[owner.value] == list else { continue }
            columns[place].buckets[owner.value] = nil
            if columns[place].buckets.isEmpty { columns.remove(at: place) }
            break
        }
        return true
    }

    private mutating func columnPlace(of column: Column) -> Int {
        let known = columns.firstIndex {
            $0.column.name == column.name && $0.column.comparison == column.comparison
                && $0.column.type == column.type
        }
        if let known { return known }
        columns.append(ColumnIndex(column: column))
        return columns.count - 1
    }
}

/// Matches one change with the entries of its table, and collects the recipients.
struct IndexSearch {
    private let layout: Int
    private var record: RowRecord
    private var matches = Matches()
    /// The deliveries of groups with several bindings that may match.
    private var merge = DeliveryMerge()

    init(change: RowChange, table: Table, layout: Int) {
        self.layout = layout
        record = RowRecord(change, table: table)
    }

    mutating func findMatches(on index: EventIndex, _ entries: EntryTable) -> Matches {
        for column in index.columns { look(up: column, in: entries) }
        if let scan = index.scan { testList(entries.entryList(scan), in: entries, byResidual: false) }
        matches.deliveries += merge.deliveries
        if !matches.undecided.isEmpty { matches.record = record }
        return matches
    }

    private mutating func look(up index: EventIndex.ColumnIndex, in entries: EntryTable) {
        guard let place = record.table.columns.firstIndex(where: { $0.name == index.column.name }) else {
            return
        }
        let column = record.table.columns[place]
        let isSameType = column.comparison == index.column.comparison && column.type == index.column.type
        switch record.value(at: place) {
        case .absent, .null: return
        case .value(let value) where isSameType:
            if let list = index.buckets[value] { testList(entries.entryList(list), in: entries, byResidual: true) }
        case .value, .omitted, .opaque:
            // The value cannot be looked up, so every filter on the column is a candidate. An entry with a list of values
            // is in several buckets.
            var seen: Set<Int32> = []
            for list in index.buckets.values {
                for entry in entries.entryList(list).entries where seen.insert(entry).inserted {
                    testEntry(entry, in: entries, byResidual: false)
                }
            }
        }
    }

    private mutating func testList(_ list: EntryTable.List, in entries: EntryTable, byResidual: Bool) {
        for entry in list.entries { testEntry(entry, in: entries, byResidual: byResidual) }
    }

    private mutating func testEntry(_ number: Int32, in entries: EntryTable, byResidual: Bool) {
        let entry = entries[number]
        let filter = byResidual ? entry.residual : entry.filter
        let verdict = filter.evaluate(&record, isSameLayout: entry.layout == layout)
        if verdict != .noMatch { recordMatch(entry, byResidual: byResidual, verdict) }
    }

    private mutating func recordMatch(_ entry: EntryTable.Entry, byResidual: Bool, _ verdict: Verdict) {
        if verdict == .unknown {
            matches.undecided.append(
                Matches.Undecided(entry: entry, isFoundByValue: byResidual, isLasting: entry.layout == layout))
        } else if entry.hasSiblings {
            merge.addBinding(entry.ids[0], to: entry.group, entry.selection)
        } else {
            matches.deliveries.append(
                Matches.Delivery(group: entry.group, selection: entry.selection, ids: entry.ids))
        }
    }
}
