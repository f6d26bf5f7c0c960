import HeapModule

/// What the hub has to do at a certain time, to the millisecond; what can wait for the next second is in `tick`.
struct TimerQueue {
    enum Duty: Hashable {
        /// Leases of presences end.
        case leases
        /// News of presence, and counts, that waited for company.
        case presence(ChannelKey)
        case occupancy(ChannelKey)
        case typing(ChannelKey)
        /// Joins wait for others' sockets, or to be written down.
        case arrivals
    }

    private struct Entry: Comparable {
        let at: Int64
        let duty: Duty

        static func < (one: Entry, other: Entry) -> Bool { one.at < other.at }
        static func == (one: Entry, other: Entry) -> Bool { one.at == other.at }
    }

    private var entries = Heap<Entry>()
    /// When each is due. Entries of other times are leftovers.
    private var due: [Duty: Int64] = [:]

    /// The time of the next duty, in monotonic milliseconds.
    var next: Int64? { entries.min?.at }

    /// Sees to it that the duty is done at that time, or earlier if that is noted already.
    mutating func note(_ duty: Duty, at time: Int64) {
        if let known = due[duty], known <= time { return }
        due[duty] = time
        entries.insert(Entry(at: time, duty: duty))
    }

    mutating func forget(_ duty: Duty) { due[duty] = nil }

    /// A duty whose time has come.
    mutating func take(at now: Int64) -> Duty? {
        while let entry = entries.min, entry.at <= now {
            entries.removeMin()
            guard due[entry.duty] == entry.at else { continue }
            due[entry.duty] = nil
            return entry.duty
        }
        return nil
    }
}
