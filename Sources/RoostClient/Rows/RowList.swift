public import Foundation

/// The current rows of a table that match a filter, in order: one element of the sequence from
/// ``Channel/rows(of:in:schema:where:order:limit:key:keeping:pending:)``.
///
/// A collection of rows with their state; a row's columns can be read directly (`list[0].body`).
public struct RowList<Row: Sendable>: Sendable {
    private var items: [ListedRow<Row>]
    /// Whether there may be more rows after the last one.
    public let hasMore: Bool
    /// Whether every change arrives. False while the connection is away or the rows are being read, and if they come
    /// from the storage: the list then has its last known state.
    public let isLive: Bool
    /// The problem with the list, in one sentence: the hub could not read it (which is retried), or it cannot be
    /// stored.
    public let problem: String?
    /// Rows that cannot be decoded as `Row`, or that the hub could not send whole; they are left out.
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

    /// The rows without their state.
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
        /// The row is in the table.
        case stored
        /// The row is in the outbox, and not written yet.
        case pending
        /// The server has the row, and its change is on its way.
        case sent
    }

    /// The row's key, or its `localID` if it has one. It stays the same from draft to row, so that the row's view
    /// stays, too.
    public let id: String
    public let row: Row
    public let state: State

    /// Whether the row is still to be written, or its change still to arrive.
    public var isPending: Bool { state != .stored }

    public subscript<Value>(dynamicMember path: KeyPath<Row, Value>) -> Value { row[keyPath: path] }
}

extension RowList: Equatable where Row: Equatable {}
extension ListedRow: Equatable where Row: Equatable {}

/// A row of a list that cannot be decoded as the requested type.
public struct UnreadableListRow: Sendable, Equatable {
    /// The parts of the row that arrived, as the text of a JSON object.
    public let json: Data
    /// The reason why it cannot be decoded, in one sentence.
    public let reason: String
}
