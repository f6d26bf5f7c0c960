import DequeModule

/// The last entries that were read. They distinguish a repeat from a rewritten log, and tell which of this hub's own
/// messages the log has up to a place.
struct RecentEntries {
    private struct Entry {
        var place: LogPlace
        var tag: UInt64
        /// The newest sequence of this hub up to here; nil if unknown.
        var own: UInt64?
    }

    static let most = 1_000
    private var entries: Deque<Entry> = []

    /// Places must ascend.
    mutating func append(_ place: LogPlace, tag: UInt64, own: UInt64?) {
        if entries.count == Self.most { entries.removeFirst() }
        entries.append(Entry(place: place, tag: tag, own: own))
    }

    func tag(at place: LogPlace) -> UInt64? {
        let index = firstIndex(beyond: place) - 1
        return index >= 0 && entries[index].place == place ? entries[index].tag : nil
    }

    /// The newest place that this log shares, with its tag and this hub's newest sequence up to there.
    func commonPlace(with lineage: LogLineage) -> (place: LogPlace, tag: UInt64, own: UInt64?)? {
        entries.last { entry in
            guard lineage.contains(entry.place) else { return false }
            if entry.place.epoch < lineage.epoch { return true }
            return entry.place.offset < lineage.head.offset || (entry.place == lineage.head && entry.tag == lineage.tag)
        }.map { ($0.place, $0.tag, $0.own) }
    }

    /// Removes the entries beyond a place.
    mutating func removeEntries(after place: LogPlace) { entries.removeSubrange(firstIndex(beyond: place)...) }

    mutating func removeAll() { entries.removeAll() }

    private func firstIndex(beyond place: LogPlace) -> Int {
        var low = 0
        var high = entries.count
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].place <= place { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
