import Synchronization
package import Wire

/// A row whose receipts are written back: as `receipts.statement` is told of it. One object for all who are sent it.
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

/// A user certainly has a row.
package struct Receipt: Sendable {
    package let user: Name
    package let row: ReceiptRow
    /// The app that proved it is on the screen, or does not say.
    package let isShown: Bool
    /// In milliseconds since 1970.
    package let at: Int64
    /// What the socket had acknowledged before: the row lies behind it.
    let mark: Int

    package init(user: Name, row: ReceiptRow, isShown: Bool, at: Int64, mark: Int) {
        self.user = user
        self.row = row
        self.isShown = isShown
        self.at = at
        self.mark = mark
    }
}

/// Proven receipts on their way to the application's own table. The loops write it, and one thread reads it
/// (`receipts.statement`). Safe from any thread.
///
/// **Bounds**: `capacity` receipts wait. When they do, sockets' proofs are not taken: what they prove is taken with a later pong.
///
/// Invariant: a receipt is here before its pong counts as an acknowledgement, and until it is written. So the place to go on from that the
/// feed stores stays behind its row (`oldestMark`), and whoever is killed in between sends the row again and has it proven again.
package final class ReceiptLog: Sendable {
    private struct State {
        var waiting: [Receipt] = []
        /// Of `waiting`, how many are taken already.
        var taken = 0
        /// What the reader has taken and not settled.
        var inWork: [Receipt] = []
        var count = 0
    }

    package let tables: ReceiptTables
    private let state = Mutex(State())

    private let capacity: Int
    /// How long a receipt that cannot be written keeps the feed's place behind its row, in milliseconds.
    private static let longestHold: Int64 = 60_000

    /// - Parameter capacity: how many receipts may wait; about 100 bytes each.
    package init(tables: ReceiptTables, capacity: Int = 200_000) {
        self.tables = tables
        self.capacity = capacity
    }

    /// How many wait, and how many there ever were.
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

    /// The oldest that wait. They are settled, or given back, before the next are taken.
    package func take(upTo count: Int) -> [Receipt] {
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

    /// What was taken is written, or refused for good, but for these, which are tried again: in front of all others, or behind them.
    package func settle(inFront: [Receipt] = [], behind: [Receipt] = []) {
        state.withLock { state in
            state.inWork = []
            if !inFront.isEmpty {
                state.waiting.replaceSubrange(..<state.taken, with: inFront)
                state.taken = 0
            }
            state.waiting += behind
        }
    }

    /// The earliest mark behind which a row lies whose receipt is not written; nil where there is none.
    ///
    /// To be asked after what the sockets have acknowledged: a pong's receipts are here first.
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

/// The tables whose rows' receipts are written back. Safe from any thread.
package final class ReceiptTables: Sendable {
    /// `SCHEMA.TABLE`.
    private let names: Set<Name>
    private let keys = Mutex<[Name: [Name]]>([:])

    package init(_ names: Set<Name>) { self.names = names }

    package func contains(schema: Name, table: Name) -> Bool { names.contains(Name("\(schema).\(table)")) }

    /// The columns of a table's primary key.
    package func learn(_ key: [Name], schema: Name, table: Name) {
        keys.withLock { $0[Name("\(schema).\(table)")] = key }
    }

    /// Nil for a row without a key.
    package static func row(schema: Name, table: Name, key: [Name], in record: JSON) -> ReceiptRow? {
        let values = key.compactMap { column in record[column.text].map { (column, $0) } }
        guard !key.isEmpty, values.count == key.count else { return nil }
        let key = JSONWriter.object { writer in
            for (column, value) in values { writer.member(column.text, json: value.bytes) }
        }
        return ReceiptRow(table: Name("\(schema).\(table)"), key: key)
    }

    /// The row that a message of `realtime.broadcast_changes` tells; nil where its receipts are not written.
    func row(of insert: JSON) -> ReceiptRow? {
        guard let schema = insert["schema"]?.string, let table = insert["table"]?.string, let record = insert["record"],
            let key = keys.withLock({ $0[Name("\(schema).\(table)")] })
        else { return nil }
        return Self.row(schema: Name(schema), table: Name(table), key: key, in: record)
    }
}
