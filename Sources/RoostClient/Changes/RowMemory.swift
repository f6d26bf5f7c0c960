import DequeModule

/// Which versions of which rows were handed to the consumer: a repeat is dropped, and so is what is older than what the
/// consumer has.
///
/// Bounded: the rows that changed last are remembered. Of a row that was forgotten a repeat is handed on, since to
/// repeat is better than to lose.
package struct RowMemory {
    private struct Entry {
        var number: Int64?
        var time: String?
        /// Of the changes that were handed on with that time.
        var fingerprints: Set<Int>
        var touched: UInt64
    }

    private var entries: [RowIdentity: Entry] = [:]
    private var order = Deque<(RowIdentity, UInt64)>()
    private var clock: UInt64 = 0
    private let limit: Int

    package init(limit: Int) { self.limit = max(1, limit) }

    /// Rows that are remembered.
    package var count: Int { entries.count }

    /// Whether the change is news; if so, it is remembered.
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

    /// The data is loaded again: what was handed on before says nothing about it.
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
