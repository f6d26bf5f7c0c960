import DequeModule
import Foundation
import Wire

/// Identifies rows, so that repeated changes can be recognized.
public struct RowKey<Row: Sendable>: Sendable {
    /// Returns the identity of a change's row. Receives the change and its decoded row (for a delete the old row), if
    /// it could be decoded. Returns nil if the row cannot be identified.
    let identity: @Sendable (IncomingChange, Row?, JSONDecoder) -> RowIdentity?

    /// Identifies rows by these columns, named as in Postgres. Exact for every change, including deletes.
    public static func columns(_ names: String...) -> RowKey {
        RowKey { change, _, _ in
            guard let row = change.kind == .delete ? change.old : change.record else { return nil }
            let values = names.compactMap { row[$0]?.description }
            return values.count == names.count ? RowIdentity(values) : nil
        }
    }

    /// Identifies rows by a property. For a delete this works only if the old row can be decoded as `Row`.
    public static func path<Key: Hashable & Sendable>(_ path: any KeyPath<Row, Key> & Sendable) -> RowKey {
        by { $0[keyPath: path] }
    }

    /// Identifies rows by a closure's result. For a delete this works only if the old row can be decoded as `Row`.
    public static func by<Key: Hashable & Sendable>(_ key: @escaping @Sendable (Row) -> Key) -> RowKey {
        RowKey { _, row, _ in row.map { RowIdentity(key($0)) } }
    }

    /// Does not identify rows: only identical changes are recognized as repeats.
    public static var none: RowKey { RowKey { _, _, _ in nil } }
}

extension RowKey where Row: Identifiable, Row.ID: Sendable & Decodable {
    /// Identifies rows by their `id`. For a delete it is the `id` of the old row if that can be decoded as `Row`,
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

/// The identity of one row.
///
/// Sendable, because it is only made from Sendable values, which cannot change afterwards.
package struct RowIdentity: Hashable, @unchecked Sendable {
    private let value: AnyHashable

    package init(_ value: some Hashable & Sendable) { self.value = AnyHashable(value) }
}

/// The version of a row that a change brought, to tell repeats from news.
///
/// Roost's cursors end in the change's number, in base 36 after the last dot. Of two changes of one row the later one
/// has the higher number, whatever the clocks say. Without such a number (another server), the commit time decides, and
/// among changes of the same millisecond their content.
package struct ChangeVersion: Equatable, Sendable {
    package let number: Int64?
    package let time: String?
    package let fingerprint: Int

    package init(_ change: IncomingChange) {
        number = Self.changeNumber(of: change.cursor)
        time = change.commitTime
        var hasher = Hasher()
        change.data.bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
        fingerprint = hasher.finalize()
    }

    /// The change's number at the end of a Roost cursor; nil if there is none.
    package static func changeNumber(of cursor: String?) -> Int64? {
        guard let cursor, let point = cursor.lastIndex(of: ".") else { return nil }
        let digits = cursor[cursor.index(after: point)...]
        // Int64 would accept a sign, too.
        guard digits.first != "-", digits.first != "+" else { return nil }
        return Int64(digits, radix: 36)
    }
}

/// The versions of rows that were delivered to the consumer, for dropping repeats and outdated changes.
///
/// Bounded: it remembers the rows that changed last. A repeat for a forgotten row is delivered, as repeating is better
/// than losing.
package struct RowMemory {
    private struct Entry {
        var number: Int64?
        var time: String?
        /// The fingerprints of the changes that were delivered with that time.
        var fingerprints: Set<Int>
        /// The row's last change, by `clock`.
        var touched: UInt64
    }

    private var entries: [RowIdentity: Entry] = [:]
    /// The rows in the order of their changes; entries older than the row's own are void.
    private var order = Deque<(RowIdentity, UInt64)>()
    /// Counts the remembered changes.
    private var clock: UInt64 = 0
    private let limit: Int

    package init(limit: Int) { self.limit = max(1, limit) }

    /// The number of remembered rows.
    package var count: Int { entries.count }

    /// Whether the change is news. If so, remembers it.
    package mutating func isNews(_ row: RowIdentity, _ version: ChangeVersion) -> Bool {
        guard var entry = entries[row] else {
            touchRow(
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
        touchRow(row, entry)
        return true
    }

    /// Forgets all rows: the data is loaded again, independently of earlier changes.
    package mutating func forgetRows() {
        entries = [:]
        order = []
    }

    private mutating func touchRow(_ row: RowIdentity, _ entry: Entry) {
        clock += 1
        var entry = entry
        entry.touched = clock
        entries[row] = entry
        order.append((row, clock))
        while entries.count > limit, let (oldest, at) = order.popFirst() {
            if entries[oldest]?.touched == at { entries[oldest] = nil }
        }
        // Rows that change often leave void entries behind, which are removed once they are the majority.
        if order.count > 2 * limit + 64 { order = Deque(order.filter { entries[$0.0]?.touched == $0.1 }) }
    }
}
