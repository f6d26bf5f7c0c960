import Gateway
import Hub

/// An event of a channel as an operator sees it: once, although each event loop recorded its own sends.
struct ListedEvent {
    /// The loops that recorded it, and its number on the first of them.
    private(set) var loops: Set<Int>
    let number: Int
    let first: TrafficEvent
    /// The number on all loops.
    private(set) var receivers: Int

    var loop: Int { loops.min() ?? 0 }

    /// The longest time in milliseconds between two loops' records of one event: a busy loop takes a message later than
    /// the others.
    private static let apart: Int64 = 1000

    private init(_ event: TrafficEvent, loop: Int) {
        loops = [loop]
        number = event.number
        first = event
        receivers = event.receivers
    }

    /// Merges the loops' records of one channel, oldest first.
    ///
    /// Each loop records every event once and in the same order, so among equal records the first ones of all loops
    /// belong together, and so do the second ones.
    static func mergeNotes(_ notes: [(loop: Int, event: TrafficEvent)]) -> [ListedEvent] {
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
