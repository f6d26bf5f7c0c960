import HeapModule

/// What is due when: one time for each subject, in milliseconds of whatever clock its owner uses.
///
/// A heap of times, of which the first is always in force; to change or forget a time costs nothing but an entry that is
/// skipped when it comes up. Entries that were overtaken never make up more than half of the heap.
package struct TimerQueue<Subject: Hashable> {
    fileprivate struct Entry: Comparable {
        let at: Int64
        let subject: Subject

        static func < (one: Entry, other: Entry) -> Bool { one.at < other.at }
        static func == (one: Entry, other: Entry) -> Bool { one.at == other.at }
    }

    private var entries = Heap<Entry>()
    /// When each subject is due. Entries of other times were overtaken.
    private var times: [Subject: Int64] = [:]

    package init() {}

    /// How many entries the heap has, those that were overtaken among them.
    package var entryCount: Int { entries.count }

    /// The time at which the next subject is due.
    package var next: Int64? { entries.min?.at }

    /// Sees to it that the subject is due at that time, or earlier if that is noted already.
    package mutating func note(_ subject: Subject, at time: Int64) {
        if let known = times[subject], known <= time { return }
        insert(subject, at: time)
    }

    /// Sees to it that the subject is due at that time and at no other; nil forgets it.
    package mutating func set(_ subject: Subject, at time: Int64?) {
        guard times[subject] != time else { return }
        if let time { insert(subject, at: time) } else { times[subject] = nil }
        settle()
    }

    package mutating func forget(_ subject: Subject) { set(subject, at: nil) }

    /// Takes a subject whose time has come; it has none from here on.
    package mutating func take(at now: Int64) -> Subject? {
        guard let entry = entries.min, entry.at <= now else { return nil }
        entries.removeMin()
        times[entry.subject] = nil
        settle()
        return entry.subject
    }

    private mutating func insert(_ subject: Subject, at time: Int64) {
        times[subject] = time
        entries.insert(Entry(at: time, subject: subject))
        // Times that lie hours ahead are overtaken for hours: they must not pile up.
        if entries.count > 2 * times.count + 64 {
            entries = Heap(times.map { Entry(at: $1, subject: $0) })
        }
    }

    private mutating func settle() {
        while let entry = entries.min, times[entry.subject] != entry.at { entries.removeMin() }
    }
}

extension TimerQueue: Sendable where Subject: Sendable {}
extension TimerQueue.Entry: Sendable where Subject: Sendable {}

/// What the hub has to do at a certain time, to the millisecond; what can wait for the next second is in `tick`.
enum HubDuty: Hashable {
    /// Leases of presences end.
    case leases
    /// News of presence, and counts, that waited for company.
    case presence(ChannelKey)
    case occupancy(ChannelKey)
    case typing(ChannelKey)
    /// News of a stream that waited for company.
    case stream(ChannelKey)
    /// Joins wait for others' sockets, or to be written down.
    case arrivals
    /// A join is to be answered, or a member told something, whatever has not come by then.
    case member(Slot, MemberID)
}
