/// Entries of the present epoch that came ahead of a hole, by their offsets, within a bound of bytes. What does not fit
/// is dropped and read from the log.
struct AheadEntries {
    /// What an entry costs beside its batch.
    private static let overhead = 128

    let mostBytes: Int
    private(set) var bytes = 0
    private(set) var dropped = 0
    /// The highest offset that came, dropped ones too.
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

    mutating func remove(_ offset: Int64) -> LogEntry? {
        guard let entry = entries.removeValue(forKey: offset) else { return nil }
        bytes -= entry.batch.count + Self.overhead
        return entry
    }

    /// Forgets what was read otherwise. What is kept may be large, so it is done only when all of a hole is read.
    mutating func cut(upTo offset: Int64) {
        for old in entries.keys where old <= offset { _ = remove(old) }
    }

    mutating func removeAll() {
        entries.removeAll()
        bytes = 0
        highest = -1
    }
}
