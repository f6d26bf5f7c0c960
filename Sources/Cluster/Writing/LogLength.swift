import DequeModule

/// How many entries the log keeps: as many as are no more than so many bytes together, and never more than `mostEntries`.
///
/// Redis trims by the number of entries (`XADD … MAXLEN ~`), and entries are of any size. Whoever reads the log sees the size of each, so
/// that the number follows what is in it now. A hub that has just come knows the entries alone that came since; those of before are trimmed by the
/// others, and by this one once it has seen enough. Pure.
package struct LogLength: Sendable {
    /// More than the hubs of a cluster write in a minute, a turn each half millisecond.
    package static let mostEntries = 60_000
    /// Fewer are never kept: who is cut off for a moment has to find what it missed.
    package static let leastEntries = 16
    /// What an entry costs Redis beside its batch, about.
    private static let overhead = 100

    package let mostBytes: Int
    private var sizes: Deque<Int> = []
    private var bytes = 0
    private var newest: LogPlace?
    /// The log has had more than it is to keep.
    private var isFull = false

    package init(mostBytes: Int) { self.mostBytes = mostBytes }

    /// An entry stands in the log. One that was counted already does not count twice.
    package mutating func append(_ size: Int, at place: LogPlace) {
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

    /// How many entries it is to keep, about.
    package var entries: Int { isFull ? sizes.count : Self.mostEntries }
}
