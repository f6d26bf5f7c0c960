package import Wire

/// One row that a committed transaction wrote to a watched table.
package struct RowChange: Sendable {
    /// The outbox' sequence: a later change of the same row has the higher id.
    package let id: Int64
    package let table: Table
    package let operation: Operation
    /// When the change was committed, in UTC with milliseconds: `2026-01-01T00:00:00.123Z`.
    package let commitTimestamp: String
    /// When the transaction was committed, in microseconds since 1970; nil where it is not known.
    package let committedAtMicroseconds: Int64?
    /// The row after the change as a JSON object; nil for a DELETE.
    package let record: [UInt8]?
    /// The row before the change as a JSON object; nil for an INSERT. Read from the WAL, it has the columns of the replica
    /// identity only, and is nil for an UPDATE that left those as they were.
    package let oldRecord: [UInt8]?
    /// Postgres' own text of the row after the change, and of that before, where JSON does not read back as the row; empty
    /// where it does, and nil where nothing is known (`JudgedRecord`).
    let text: [UInt8]?
    let oldText: [UInt8]?
    /// The row was larger than the limit and the outbox kept only its small values (≤ 64 bytes).
    package let isReduced: Bool
    /// What deleted the row; nil for other changes.
    package let deletion: WriterTransaction?

    package init(
        id: Int64, table: Table, operation: Operation, commitTimestamp: String, committedAtMicroseconds: Int64? = nil,
        record: [UInt8]?, oldRecord: [UInt8]?, text: [UInt8]? = nil, oldText: [UInt8]? = nil, isReduced: Bool,
        deletion: WriterTransaction? = nil
    ) {
        self.id = id
        self.table = table
        self.operation = operation
        self.commitTimestamp = commitTimestamp
        self.committedAtMicroseconds = committedAtMicroseconds
        self.record = record
        self.oldRecord = oldRecord
        self.text = text
        self.oldText = oldText
        self.isReduced = isReduced
        self.deletion = deletion
    }

    /// Whether it is no row of a table, but a notification that a backend wants sent: `record` says to whom, and what.
    package var isNotification: Bool { table === Table.notifications }

    package enum Operation: String, Sendable {
        case insert = "INSERT"
        case update = "UPDATE"
        case delete = "DELETE"
    }
}

/// A transaction, as the outbox tells which rows it wrote.
package struct WriterTransaction: Hashable, Sendable {
    /// The one that its rows in the outbox belong to: a row that was read from the WAL was stored by another.
    package let id: UInt64
    /// Where its commit is in the WAL, as Postgres writes it; nil where triggers wrote its rows.
    package let place: Name?

    /// - Parameter text: the id, and behind a space the place.
    package init?(_ text: String) {
        let parts = text.split(separator: " ")
        guard let id = parts.first.flatMap({ UInt64($0) }) else { return nil }
        self.id = id
        place = parts.count > 1 ? Name(String(parts[1])) : nil
    }
}

/// The operations that a subscription wants to hear of.
package struct EventSet: OptionSet, Hashable, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    package static let insert = EventSet(rawValue: 1)
    package static let update = EventSet(rawValue: 2)
    package static let delete = EventSet(rawValue: 4)
    package static let all: EventSet = [.insert, .update, .delete]

    package init(_ operation: RowChange.Operation) {
        switch operation {
        case .insert: self = .insert
        case .update: self = .update
        case .delete: self = .delete
        }
    }

    /// What a client calls an event, in any case; every other word means all of them, as in the original server.
    package init(clientText: String) {
        self = RowChange.Operation(rawValue: clientText.uppercased()).map(EventSet.init) ?? .all
    }

    /// The event as the protocol writes it.
    package var name: String {
        switch self {
        case .insert: "INSERT"
        case .update: "UPDATE"
        case .delete: "DELETE"
        default: "*"
        }
    }
}
