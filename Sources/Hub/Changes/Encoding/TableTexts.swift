import Wire

/// The parts of `data` that are the same for all changes of a table.
struct TableTexts: Sendable {
    let table: Table
    /// By the selected columns. Bounded: clients choose them.
    private var selections: [Selection?: Selected] = [:]
    private static let selectionLimit = 64

    init(_ table: Table) {
        self.table = table
    }

    /// Which columns a record shows.
    enum Columns: Equatable, Sendable {
        case none
        case all
        case some([Bool])

        /// A member that is no column any more goes with the whole record only.
        func includes(_ column: Int?) -> Bool {
            switch self {
            case .none: false
            case .all: true
            case .some(let shown): column.map { shown[$0] } ?? false
            }
        }

        init(_ shown: [Bool]) {
            self = shown.allSatisfy { $0 } ? .all : shown.contains(true) ? .some(shown) : .none
        }
    }

    struct Selected: Sendable {
        /// From the opening brace to the place of the commit timestamp.
        let head: [UInt8]
        let columns: [UInt8]
        let shown: Columns
        let shownOfOld: Columns
    }

    mutating func selected(_ selection: Selection?) -> Selected {
        if let known = selections[selection] { return known }
        if selections.count >= Self.selectionLimit { selections.removeAll() }
        let made = make(selection)
        selections[selection] = made
        return made
    }

    private func make(_ selection: Selection?) -> Selected {
        let isShown = table.columns.map { selection?.includes($0) ?? true }
        let isShownOfOld = zip(table.columns, isShown).map { $0.isReplicaIdentity && $1 }
        var head = Array(#"{"schema":"#.utf8)
        JSONString.encode(table.schema, into: &head)
        head.append(contentsOf: #","table":"#.utf8)
        JSONString.encode(table.name, into: &head)
        head.append(contentsOf: #","commit_timestamp":"#.utf8)
        var columns: [UInt8] = []
        for (column, isShown) in zip(table.columns, isShown) where isShown {
            columns.append(UInt8(ascii: columns.isEmpty ? "[" : ","))
            columns.append(contentsOf: #"{"name":"#.utf8)
            JSONString.encode(column.name, into: &columns)
            columns.append(contentsOf: #","type":"#.utf8)
            JSONString.encode(column.type, into: &columns)
            columns.append(UInt8(ascii: "}"))
        }
        columns.append(contentsOf: columns.isEmpty ? "[]".utf8 : "]".utf8)
        return Selected(head: head, columns: columns, shown: Columns(isShown), shownOfOld: Columns(isShownOfOld))
    }
}
