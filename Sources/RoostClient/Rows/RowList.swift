public import Foundation

/// The rows of a table that match a filter, in their order, as they are now: one value of the sequence that ``Channel/rows(of:in:schema:where:order:limit:key:keeping:pending:)`` makes.
///
/// It is a collection of rows with their state; a row's columns can be read directly (`list[0].body`).
public struct RowList<Row: Sendable>: Sendable {
    private var items: [ListedRow<Row>]
    /// There may be more rows behind the last one.
    public let hasMore: Bool
    /// Every change comes. False while the connection is away or the rows are being read, and where they come from the storage: then this
    /// is what was so last.
    public let isLive: Bool
    /// Why the list is not what it should be, in one sentence: the hub could not read it (it is tried again), or it cannot be stored.
    public let problem: String?
    /// Rows that cannot be read as `Row`, or that the hub could not send whole; they are left out.
    public let unreadable: [UnreadableListRow]

    init(
        _ items: [ListedRow<Row>], hasMore: Bool, isLive: Bool, problem: String?, unreadable: [UnreadableListRow]
    ) {
        self.items = items
        self.hasMore = hasMore
        self.isLive = isLive
        self.problem = problem
        self.unreadable = unreadable
    }

    /// The rows alone.
    public var rows: [Row] { items.map(\.row) }
}

extension RowList: RandomAccessCollection {
    public var startIndex: Int { items.startIndex }
    public var endIndex: Int { items.endIndex }
    public subscript(index: Int) -> ListedRow<Row> { items[index] }
}

/// A row in a list.
@dynamicMemberLookup
public struct ListedRow<Row: Sendable>: Sendable, Identifiable {
    public enum State: Sendable, Equatable {
        /// It is in the table.
        case stored
        /// It is in the outbox, and not written yet.
        case pending
        /// The server has it, and the row is on its way.
        case sent
    }

    /// The key of the row; of one with a `localID`, that. It stays the same from draft to row, so that a view of it stays, too.
    public let id: String
    public let row: Row
    public let state: State

    /// Whether it is still to be written, or to come.
    public var isPending: Bool { state != .stored }

    public subscript<Value>(dynamicMember path: KeyPath<Row, Value>) -> Value { row[keyPath: path] }
}

extension RowList: Equatable where Row: Equatable {}
extension ListedRow: Equatable where Row: Equatable {}

/// A row of a list that cannot be handed on as the type that was asked for.
public struct UnreadableListRow: Sendable, Equatable {
    /// What came of the row, as the text of a JSON object.
    public let json: Data
    /// Why it cannot be read, in one sentence.
    public let reason: String
}
