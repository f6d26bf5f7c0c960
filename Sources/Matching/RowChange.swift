package import Wire

/// One row that a committed transaction wrote to a watched table.
package struct RowChange: Sendable {
    /// The outbox's sequence number: a later change of the same row has a higher id.
    package let id: Int64
    package let table: Table
    package let operation: Operation
    /// The time of the commit, in UTC with milliseconds: `2026-01-01T00:00:00.123Z`.
    package let commitTimestamp: String
    /// The time of the commit in microseconds since 1970; nil if unknown.
    package let committedAtMicroseconds: Int64?
    /// The row after the change as a JSON object; nil for a DELETE.
    package let record: [UInt8]?
    /// The row before the change as a JSON object; nil for an INSERT. From the WAL, it has only the columns of the replica
    /// identity, and is nil for an UPDATE that left those unchanged.
    package let oldRecord: [UInt8]?
    /// Postgres' own text of the row after and before the change, if the JSON does not read back as the row; empty if the
    /// JSON does, nil if that is unknown (`JudgedRecord`).
    let text: [UInt8]?
    let oldText: [UInt8]?
    /// True if the row exceeded the limit and the outbox kept only its small values (≤ 64 bytes).
    package let isReduced: Bool
    /// The transaction that deleted the row; nil for other changes.
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

    /// True for a notification that a backend wants sent rather than a table's row: `record` has its recipients and
    /// content.
    package var isNotification: Bool { table === Table.notifications }

    package enum Operation: String, Sendable {
        case insert = "INSERT"
        case update = "UPDATE"
        case delete = "DELETE"
    }
}

/// A transaction, as the outbox identifies the rows that it wrote.
package struct WriterTransaction: Hashable, Sendable {
    /// The transaction whose rows these are in the outbox: a row read from the WAL was stored by a different one.
    package let id: UInt64
    /// The position of its commit in the WAL, as Postgres writes it; nil if triggers wrote its rows.
    package let place: Name?

    /// - Parameter text: the id, then a space and the position.
    package init?(_ text: String) {
        let parts = text.split(separator: " ")
        guard let id = parts.first.flatMap({ UInt64($0) }) else { return nil }
        self.id = id
        place = parts.count > 1 ? Name(String(parts[1])) : nil
    }
}

/// The operations that a subscription wants.
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

    /// Reads a client's name for an event, in any case; every other word means all events, as in the original server.
    package init(clientText: String) {
        self = RowChange.Operation(rawValue: clientText.uppercased()).map(EventSet.init) ?? .all
    }

    /// The event as the protocol spells it.
    package var name: String {
        switch self {
        case .insert: "INSERT"
        case .update: "UPDATE"
        case .delete: "DELETE"
        default: "*"
        }
    }
}
