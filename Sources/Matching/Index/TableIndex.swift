/// The entries of one table.
struct TableIndex: Sendable {
    private var insert = EventIndex()
    private var update = EventIndex()
    private var delete = EventIndex()
    /// The column layouts that the table has had since filters were bound to it. Filters and records carry a number
    /// instead of being compared column by column.
    private(set) var layouts: [Table] = []
    /// The table as the last change had it, and its layout.
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
