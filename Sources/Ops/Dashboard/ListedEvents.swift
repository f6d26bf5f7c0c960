import Gateway
import Hub

/// An event of a channel as an operator sees it: once, although each event loop noted what it sent to sockets of its own.
struct ListedEvent {
    /// The loops that noted it, and the number that it has on the first of them.
    private(set) var loops: Set<Int>
    let number: Int
    let first: TrafficEvent
    /// On all loops.
    private(set) var receivers: Int

    var loop: Int { loops.min() ?? 0 }

    /// Loops are handed a message at once, and one that is busy takes it later: milliseconds within which two notes are of
    /// one event, if they say the same.
    private static let apart: Int64 = 1000

    private init(_ event: TrafficEvent, loop: Int) {
        loops = [loop]
        number = event.number
        first = event
        receivers = event.receivers
    }

    /// What loops noted of one channel, oldest first.
    ///
    /// Each loop notes every event once and in the order of the others, so of two that say the same the first notes of all
    /// loops belong together, and so do the second ones.
    static func joined(_ notes: [(loop: Int, event: TrafficEvent)]) -> [ListedEvent] {
        var events: [ListedEvent] = []
        for (loop, note) in notes.sorted(by: { ($0.event.at, $0.event.number) < ($1.event.at, $1.event.number) }) {
            let known = events.firstIndex { $0.isSame(as: note) && !$0.loops.contains(loop) }
            if let known {
                events[known].loops.insert(loop)
                events[known].receivers += note.receivers
            } else {
                events.append(ListedEvent(note, loop: loop))
            }
        }
        return events
    }

    private func isSame(as note: TrafficEvent) -> Bool {
        note.at - first.at < Self.apart && note.bytes == first.bytes && note.event.hasSameBytes(as: first.event)
            && note.excerpt == first.excerpt && note.isRefused == first.isRefused
    }
}
