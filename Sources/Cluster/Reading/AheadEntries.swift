/// Entries of the current epoch that arrived ahead of a hole, by offset, within a bound of bytes. Those that do not fit
/// are dropped and read from the log.
struct AheadEntries {
    /// The estimated cost of an entry beyond its batch.
    private static let overhead = 128

    let mostBytes: Int
    private(set) var bytes = 0
    private(set) var dropped = 0
    /// The highest offset that arrived, including dropped entries.
    private(set) var highest: Int64 = -1
    private var entries: [Int64: LogEntry] = [:]

    init(mostBytes: Int) { self.mostBytes = mostBytes }

    var isEmpty: Bool { entries.isEmpty }

    mutating func insert(_ entry: LogEntry) {
        highest = max(highest, entry.place.offset)
        guard entries[entry.place.offset] == nil else { return }
        let cost = entry.batch.count + Self.overhead
        guard bytes + cost <= mostBytes else {
            dropped += 1
            return
        }
        bytes += cost
        entries[entry.place.offset] = entry
    }

    mutating func removeEntry(_ offset: Int64) -> LogEntry? {
        guard let entry = entries.removeValue(forKey: offset) else { return nil }
        bytes -= entry.batch.count + Self.overhead
        return entry
    }

    /// Removes entries that have been read from the log. Walking over all of them is costly, so call it only when a whole hole is read.
    mutating func removeEntries(upTo offset: Int64) {
        for old in entries.keys where old <= offset { _ = removeEntry(old) }
    }

    mutating func removeAll() {
        entries.removeAll()
        bytes = 0
        highest = -1
    }
}
