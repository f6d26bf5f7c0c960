import HeapModule

/// A queue of timers: one time for each subject, in milliseconds of its owner's clock.
///
/// A heap of times whose first entry is always valid; changing or removing a time costs only a stale entry, which is
/// skipped when it comes up. Stale entries never make up more than half of the heap.
package struct TimerQueue<Subject: Hashable> {
    fileprivate struct Entry: Comparable {
        let at: Int64
        let subject: Subject

        static func < (one: Entry, other: Entry) -> Bool { one.at < other.at }
        static func == (one: Entry, other: Entry) -> Bool { one.at == other.at }
    }

    private var entries = Heap<Entry>()
    /// The time of each subject. Entries with other times are stale.
    private var times: [Subject: Int64] = [:]

    package init() {}

    /// The number of entries in the heap, including stale ones.
    package var entryCount: Int { entries.count }

    /// The time at which the next subject is due.
    package var next: Int64? { entries.min?.at }

    /// Makes the subject due at that time, unless it is due earlier already.
    package mutating func ensureDue(_ subject: Subject, at time: Int64) {
        if let known = times[subject], known <= time { return }
        insert(subject, at: time)
    }

    /// Makes the subject due at exactly that time; nil removes it.
    package mutating func setDue(_ subject: Subject, at time: Int64?) {
        guard times[subject] != time else { return }
        if let time { insert(subject, at: time) } else { times[subject] = nil }
        dropStale()
    }

    package mutating func removeSubject(_ subject: Subject) { setDue(subject, at: nil) }

    /// Removes and returns a subject whose time has come.
    package mutating func takeDue(at now: Int64) -> Subject? {
        guard let entry = entries.min, entry.at <= now else { return nil }
        entries.removeMin()
        times[entry.subject] = nil
        dropStale()
        return entry.subject
    }

    private mutating func insert(_ subject: Subject, at time: Int64) {
        times[subject] = time
        entries.insert(Entry(at: time, subject: subject))
        // Times that are hours ahead may stay stale for hours: they must not pile up.
        if entries.count > 2 * times.count + 64 {
            entries = Heap(times.map { Entry(at: $1, subject: $0) })
        }
    }

    private mutating func dropStale() {
        while let entry = entries.min, times[entry.subject] != entry.at { entries.removeMin() }
    }
}

extension TimerQueue: Sendable where Subject: Sendable {}
extension TimerQueue.Entry: Sendable where Subject: Sendable {}

/// A duty of the hub at a certain time, to the millisecond; what can wait for the next second is done in `performTick`.
enum HubDuty: Hashable {
    /// End presence leases.
    case leases
    /// Send presence news, and counts, that were delayed to be merged.
    case presence(ChannelKey)
    case occupancy(ChannelKey)
    case typing(ChannelKey)
    /// Send stream news that was delayed to be merged.
    case stream(ChannelKey)
    /// Check joins that wait for other sockets, or to be written down.
    case arrivals
    /// Answer a join, or send a member a withheld message, whatever is still missing.
    case member(Slot, MemberID)
}
