/// The entries of one table for one event: those that wait for a value in buckets, the others in a list to scan.
struct EventIndex: Sendable {
    struct ColumnIndex: Sendable {
        /// As the filters were bound to it; a column that has changed its type since is another one.
        let column: Column
        var buckets: [ComparedValue: Int32] = [:]
    }

    private(set) var scan: Int32?
    private(set) var columns: [ColumnIndex] = []
    /// Which bucket a list is, to drop it when it is empty.
    private var owners: [Int32: (column: String, value: ComparedValue)] = [:]

    var isEmpty: Bool { scan == nil && columns.isEmpty }

    mutating func link(_ entry: Int32, by equality: BoundCondition?, in table: inout EntryTable) {
        guard let equality, let values = equality.equalTo else {
            let list = scan ?? table.makeList()
            scan = list
            table.link(entry, to: list)
            return
        }
        let place = place(of: equality.column)
        for value in Set(values) {
            let list = columns[place].buckets[value] ?? table.makeList()
            columns[place].buckets[value] = list
            owners[list] = (equality.column.name, value)
            table.link(entry, to: list)
        }
    }

    /// Forgets a list that has become empty; false if it is none of this index'.
    mutating func drop(_ list: Int32) -> Bool {
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

    private mutating func place(of column: Column) -> Int {
        let known = columns.firstIndex {
            $0.column.name == column.name && $0.column.comparison == column.comparison && $0.column.type == column.type
        }
        if let known { return known }
        columns.append(ColumnIndex(column: column))
        return columns.count - 1
    }
}
