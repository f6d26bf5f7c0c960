import DequeModule

/// The number of entries that the log keeps: as many as fit into `mostBytes` together, and never more than `mostEntries`.
///
/// Redis trims by the number of entries (`XADD … MAXLEN ~`), and entries vary in size. Each hub that reads the log sees
/// their sizes, so the number follows the log's current content. A hub that has just started knows only the entries
/// that came since; older ones are trimmed by the other hubs, and by this one once it has seen enough. Pure.
package struct LogLength: Sendable {
    /// A minute's entries at one each millisecond.
    package static let mostEntries = 60_000
    /// The minimum kept, so that a hub that was cut off for a moment finds what it missed.
    package static let leastEntries = 16
    /// The estimated cost of an entry in Redis beyond its batch.
    private static let overhead = 100

    package let mostBytes: Int
    private var sizes: Deque<Int> = []
    private var bytes = 0
    private var newest: LogPlace?
    /// The log has held more than it may keep.
    private var isFull = false

    package init(mostBytes: Int) { self.mostBytes = mostBytes }

    /// Counts an entry of the log once, even if it is seen again.
    package mutating func countEntry(_ size: Int, at place: LogPlace) {
        if let newest, place <= newest { return }
        newest = place
        sizes.append(size + Self.overhead)
        bytes += size + Self.overhead
        while bytes > mostBytes, sizes.count > Self.leastEntries {
            bytes -= sizes.removeFirst()
            isFull = true
        }
        while sizes.count > Self.mostEntries { bytes -= sizes.removeFirst() }
    }

    /// The number of entries to keep, approximately.
    package var entries: Int { isFull ? sizes.count : Self.mostEntries }
}
