import DequeModule

/// The last messages of this hub, sent or not, in sequence without a gap, within bounds of time and bytes.
struct WriterRing {
    private struct Item {
        var message: [UInt8]
        var at: Int64
    }

    /// The estimated cost of a message beyond its bytes.
    private static let overhead = 64

    private var items: Deque<Item> = []
    private(set) var bytes = 0
    /// The sequence of the first message, or of the next one if there is none.
    private(set) var first: UInt64 = 1

    var next: UInt64 { first + UInt64(items.count) }
    var isEmpty: Bool { items.isEmpty }

    mutating func append(_ message: [UInt8], at now: Int64) {
        items.append(Item(message: message, at: now))
        bytes += message.count + Self.overhead
    }

    /// Drops the oldest messages beyond the bounds, and returns their sequences.
    mutating func pruneOldest(before oldest: Int64, mostBytes: Int) -> ClosedRange<UInt64>? {
        let start = first
        while let item = items.first, item.at < oldest || bytes > mostBytes {
            bytes -= item.message.count + Self.overhead
            items.removeFirst()
            first += 1
        }
        return start < first ? start...first - 1 : nil
    }

    /// Messages from `sequence` on, as many as fit in a batch of `mostBytes`; one always fits.
    func messages(from sequence: UInt64, mostBytes: Int) -> [ArraySlice<UInt8>] {
        var messages: [ArraySlice<UInt8>] = []
        var size = LogBatch.mostHeader
        for item in items[Int(sequence - first)...] {
            size += item.message.count + 5
            if !messages.isEmpty, size > mostBytes || messages.count == LogBatch.mostMessages { break }
            messages.append(item.message[...])
        }
        return messages
    }
}
