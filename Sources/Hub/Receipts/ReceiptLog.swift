import Synchronization
package import Wire

/// A row whose receipts are written back, as passed to `receipts.statement`. One object for all recipients of the row.
package final class ReceiptRow: Sendable {
    /// `SCHEMA.TABLE`.
    package let table: Name
    /// The primary key, as a JSON object.
    package let key: [UInt8]

    package init(table: Name, key: [UInt8]) {
        self.table = table
        self.key = key
    }
}

/// Proof that a user has a row.
package struct Receipt: Sendable {
    package let user: Name
    package let row: ReceiptRow
    /// The app that proved it is on the screen, or does not report its state.
    package let isShown: Bool
    /// In milliseconds since 1970.
    package let at: Int64
    /// The mark that the socket had acknowledged before: the row lies behind it.
    let mark: Int

    package init(user: Name, row: ReceiptRow, isShown: Bool, at: Int64, mark: Int) {
        self.user = user
        self.row = row
        self.isShown = isShown
        self.at = at
        self.mark = mark
    }
}

/// Proven receipts on their way to the application's own table. The loops append, and one thread reads
/// (`receipts.statement`). Safe from any thread.
///
/// **Bounds**: `capacity` receipts wait. When that is reached, sockets' proofs are not accepted: a later pong proves
/// the same receipts.
///
/// Invariant: a receipt is here before its pong counts as an acknowledgement, and until it is written. So the resume
/// position that the feed stores stays before its row (`oldestMark`), and a hub that is killed in between sends the row
/// again and has it proven again.
package final class ReceiptLog: Sendable {
    private struct State {
        var waiting: [Receipt] = []
        /// The number of `waiting` receipts that are taken already.
        var taken = 0
        /// Receipts that the reading thread has taken and not settled.
        var inWork: [Receipt] = []
        var count = 0
    }

    package let tables: ReceiptTables
    private let state = Mutex(State())

    private let capacity: Int
    /// How long a receipt that cannot be written keeps the feed's position before its row, in milliseconds.
    private static let longestHold: Int64 = 60_000

    /// - Parameter capacity: the maximum number of waiting receipts; about 100 bytes each.
    package init(tables: ReceiptTables, capacity: Int = 200_000) {
        self.tables = tables
        self.capacity = capacity
    }

    /// The number of waiting receipts, and of all receipts so far.
    package var counts: (waiting: Int, all: Int) {
        state.withLock { ($0.waiting.count - $0.taken + $0.inWork.count, $0.count) }
    }

    var hasRoom: Bool { counts.waiting < capacity }

    package func append(_ receipts: [Receipt]) {
        guard !receipts.isEmpty else { return }
        state.withLock { state in
            state.waiting += receipts
            state.count += receipts.count
        }
    }

    /// Returns the oldest waiting receipts. They must be settled or given back before the next are taken.
    package func takeReceipts(upTo count: Int) -> [Receipt] {
        state.withLock { state in
            let batch = Array(state.waiting[state.taken...].prefix(count))
            state.taken += batch.count
            if state.taken * 2 > state.waiting.count {
                state.waiting.removeFirst(state.taken)
                state.taken = 0
            }
            state.inWork = batch
            return batch
        }
    }

    /// Settles the batch that was taken, which was written or finally refused, except for these, which are retried
    /// before or after all others.
    package func finishBatch(inFront: [Receipt] = [], behind: [Receipt] = []) {
        state.withLock { state in
            state.inWork = []
            if !inFront.isEmpty {
                state.waiting.replaceSubrange(..<state.taken, with: inFront)
                state.taken = 0
            }
            state.waiting += behind
        }
    }

    /// Returns the earliest mark behind which there is a row with an unwritten receipt; nil if there is none.
    ///
    /// Call after reading what the sockets have acknowledged: a pong's receipts are appended first.
    ///
    /// - Parameter now: in milliseconds since 1970.
    package func oldestMark(at now: Int64) -> Int? {
        state.withLock { state in
            var oldest: Int?
            for receipts in [state.inWork[...], state.waiting[state.taken...]] {
                for receipt in receipts where now - receipt.at < Self.longestHold && receipt.mark < oldest ?? .max {
                    oldest = receipt.mark
                }
            }
            return oldest
        }
    }
}

/// The tables for whose rows receipts are written back. Safe from any thread.
package final class ReceiptTables: Sendable {
    /// `SCHEMA.TABLE`.
    private let names: Set<Name>
    private let keys = Mutex<[Name: [Name]]>([:])

    package init(_ names: Set<Name>) { self.names = names }

    package func contains(schema: Name, table: Name) -> Bool { names.contains(Name("\(schema).\(table)")) }

    /// Sets the columns of a table's primary key.
    package func learnKey(_ key: [Name], schema: Name, table: Name) {
        keys.withLock { $0[Name("\(schema).\(table)")] = key }
    }

    /// Nil for a row without a key.
    package static func row(schema: Name, table: Name, key: [Name], in record: JSON) -> ReceiptRow? {
        let values = key.compactMap { column in record[column.text].map { (column, $0) } }
        guard !key.isEmpty, values.count == key.count else { return nil }
        let key = JSONWriter.object { writer in
            for (column, value) in values { writer.writeMember(column.text, json: value.bytes) }
        }
        return ReceiptRow(table: Name("\(schema).\(table)"), key: key)
    }

    /// Returns the row in a message of `realtime.broadcast_changes`; nil if its receipts are not written.
    func row(of insert: JSON) -> ReceiptRow? {
        guard let schema = insert["schema"]?.string, let table = insert["table"]?.string, let record = insert["record"],
            let key = keys.withLock({ $0[Name("\(schema).\(table)")] })
        else { return nil }
        return Self.row(schema: Name(schema), table: Name(table), key: key, in: record)
    }
}
