import HeapModule

/// When each activity is to be looked at next, in monotonic milliseconds.
struct DueTimes: Sendable {
    private struct Entry: Comparable {
        let at: Int64
        let id: String

        static func < (one: Entry, other: Entry) -> Bool { one.at < other.at }
    }

    /// Entries whose time is not that of `times` are leftovers.
    private var heap = Heap<Entry>()
    private var times: [String: Int64] = [:]

    private(set) var next: Int64?

    /// Nil forgets it.
    mutating func set(_ id: String, at time: Int64?) {
        guard times[id] != time else { return }
        times[id] = time
        if let time { heap.insert(Entry(at: time, id: id)) }
        // Times that lie hours ahead are leftovers for hours: they must not pile up.
        if heap.count > 2 * times.count + 64 { heap = Heap(times.map { Entry(at: $1, id: $0) }) }
        settle()
    }

    /// One whose time has come; it is to be given a new time.
    mutating func take(at now: Int64) -> String? {
        guard let next, next <= now, let entry = heap.popMin() else { return nil }
        times[entry.id] = nil
        settle()
        return entry.id
    }

    private mutating func settle() {
        while let entry = heap.min, times[entry.id] != entry.at { heap.removeMin() }
        next = heap.min?.at
    }
}
