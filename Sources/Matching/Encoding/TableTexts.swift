import Wire

/// The parts of `data` that are the same for all changes of a table.
struct TableTexts: Sendable {
    let table: Table
    /// Bounded: clients choose their columns.
    private var views: [ChangeView: Viewed] = [:]
    private static let viewLimit = 64

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

        /// - Parameter isWhole: whether a record may be shown with what is no column of the table.
        init(_ shown: [Bool], isWhole: Bool) {
            self = isWhole && shown.allSatisfy { $0 } ? .all : shown.contains(true) ? .some(shown) : .none
        }
    }

    struct Viewed: Sendable {
        /// From the opening brace to the place of the commit timestamp.
        let head: [UInt8]
        let columns: [UInt8]
        let shown: Columns
        let shownOfOld: Columns
    }

    mutating func viewed(_ view: ChangeView) -> Viewed {
        if let known = views[view] { return known }
        if views.count >= Self.viewLimit { views.removeAll() }
        let made = make(view)
        views[view] = made
        return made
    }

    private func make(_ view: ChangeView) -> Viewed {
        let isShown = table.columns.map { view.shows($0) }
        let isShownOfOld = table.columns.map { view.showsOld($0) }
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
        let isWhole = view.granted == nil
        return Viewed(
            head: head, columns: columns, shown: Columns(isShown, isWhole: isWhole),
            shownOfOld: Columns(isShownOfOld, isWhole: isWhole))
    }
}
