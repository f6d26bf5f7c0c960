import DequeModule
import Foundation
import Wire

/// What tells one row from another, so that repeats are known as such.
public struct RowKey<Row: Sendable>: Sendable {
    /// What the row of a change is known by. It is given the change, and its row (of a delete the old row) where that could
    /// be read. Nil where the row cannot be told.
    let identity: @Sendable (IncomingChange, Row?, JSONDecoder) -> RowIdentity?

    /// Rows are told apart by these columns, by their names in Postgres. This is exact for every change, deletes as well.
    public static func columns(_ names: String...) -> RowKey {
        RowKey { change, _, _ in
            guard let row = change.kind == .delete ? change.old : change.record else { return nil }
            let values = names.compactMap { row[$0]?.description }
            return values.count == names.count ? RowIdentity(values) : nil
        }
    }

    /// Rows are told apart by a property. Of a delete it is known only where the old row can be read as `Row`.
    public static func path<Key: Hashable & Sendable>(_ path: any KeyPath<Row, Key> & Sendable) -> RowKey {
        by { $0[keyPath: path] }
    }

    /// Rows are told apart by what a closure makes of them. Of a delete it is known only where the old row can be read as
    /// `Row`.
    public static func by<Key: Hashable & Sendable>(_ key: @escaping @Sendable (Row) -> Key) -> RowKey {
        RowKey { _, row, _ in row.map { RowIdentity(key($0)) } }
    }

    /// Rows are not told apart: only a change that comes again unchanged is known as a repeat.
    public static var none: RowKey { RowKey { _, _, _ in nil } }
}

extension RowKey where Row: Identifiable, Row.ID: Sendable & Decodable {
    /// Rows are told apart by their `id`. Of a delete it is the `id` of the old row where that can be read as `Row`,
    /// otherwise its only column.
    public static var id: RowKey {
        RowKey { change, row, decoder in
            if let row { return RowIdentity(row.id) }
            guard change.kind == .delete, let old = change.old else { return nil }
            var columns: [JSON] = []
            old.forEachMember { columns.append($0.value) }
            guard columns.count == 1 else { return nil }
            do throws(RoostError) {
                return RowIdentity(try decoder.roostDecode(Row.ID.self, from: Data(columns[0].bytes)))
            } catch {
                return nil
            }
        }
    }
}

/// What one row is known by.
///
/// It is Sendable, because a value can only be made from a Sendable one, which nobody can change afterwards.
package struct RowIdentity: Hashable, @unchecked Sendable {
    private let value: AnyHashable

    package init(_ value: some Hashable & Sendable) { self.value = AnyHashable(value) }
}

/// Which version of a row a change brought: what tells a repeat from news.
///
/// Roost's cursors end in the change's number, in base 36 behind the last point. Of two changes of one row the later
/// has the higher number, whatever the clocks say. Where there is no such number (another server), the time of the
/// commit decides, and among changes of the same millisecond what they say.
package struct ChangeVersion: Equatable, Sendable {
    package let number: Int64?
    package let time: String?
    package let fingerprint: Int

    package init(_ change: IncomingChange) {
        number = Self.number(of: change.cursor)
        time = change.commitTime
        var hasher = Hasher()
        change.data.bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
        fingerprint = hasher.finalize()
    }

    /// The change's number at the end of a cursor of Roost's; nil where there is none.
    package static func number(of cursor: String?) -> Int64? {
        guard let cursor, let point = cursor.lastIndex(of: ".") else { return nil }
        let digits = cursor[cursor.index(after: point)...]
        // Int64 would read a sign, too.
        guard digits.first != "-", digits.first != "+" else { return nil }
        return Int64(digits, radix: 36)
    }
}

/// Which versions of which rows were handed to the consumer: a repeat is dropped, and so is what is older than what the
/// consumer has.
///
/// It is bounded: the rows that changed last are remembered. A repeat for a forgotten row is handed on, since to repeat is
/// better than to lose.
package struct RowMemory {
    private struct Entry {
        var number: Int64?
        var time: String?
        /// The fingerprints of the changes that were handed on with that time.
        var fingerprints: Set<Int>
        /// When the row changed last, by `clock`.
        var touched: UInt64
    }

    private var entries: [RowIdentity: Entry] = [:]
    /// The rows by the time of their changes; places with an older time than the row's entry are void.
    private var order = Deque<(RowIdentity, UInt64)>()
    /// Counts the changes that were remembered.
    private var clock: UInt64 = 0
    private let limit: Int

    package init(limit: Int) { self.limit = max(1, limit) }

    /// How many rows are remembered.
    package var count: Int { entries.count }

    /// Whether the change is news. If so, it is remembered.
    package mutating func isNews(_ row: RowIdentity, _ version: ChangeVersion) -> Bool {
        guard var entry = entries[row] else {
            touch(
                row,
                Entry(
                    number: version.number, time: version.time, fingerprints: [version.fingerprint], touched: 0))
            return true
        }
        if let number = version.number, let last = entry.number {
            guard number > last else { return false }
        } else if let time = version.time, let last = entry.time {
            guard time >= last, time > last || !entry.fingerprints.contains(version.fingerprint) else { return false }
        } else {
            guard !entry.fingerprints.contains(version.fingerprint) else { return false }
        }
        if entry.time != version.time { entry.fingerprints = [] }
        entry.fingerprints.insert(version.fingerprint)
        entry.number = version.number ?? entry.number
        entry.time = version.time ?? entry.time
        touch(row, entry)
        return true
    }

    /// Forgets all rows: the data is loaded again, and what was handed on before says nothing about it.
    package mutating func forget() {
        entries = [:]
        order = []
    }

    private mutating func touch(_ row: RowIdentity, _ entry: Entry) {
        clock += 1
        var entry = entry
        entry.touched = clock
        entries[row] = entry
        order.append((row, clock))
        while entries.count > limit, let (oldest, at) = order.popFirst() {
            if entries[oldest]?.touched == at { entries[oldest] = nil }
        }
        // Rows that change often leave places behind; they are swept when they are the greater part.
        if order.count > 2 * limit + 64 { order = Deque(order.filter { entries[$0.0]?.touched == $0.1 }) }
    }
}
