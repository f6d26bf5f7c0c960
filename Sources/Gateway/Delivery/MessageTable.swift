package import Wire

/// Messages that at least one connection of a loop has yet to take, each stored once for all of them.
///
/// A message is one frame, or several that the same audience is sent one after the other (`FrameRun`). A pending
/// delivery is the index of a place here. Places are reused, so the table is as long as the most messages that were
/// ever pending at once.
package struct MessageTable {
    private struct Message {
        var bytes: [UInt8] = []
        /// The end of each frame; empty for a single frame.
        var ends: [Int] = []
        var references: Int32 = 0
    }
    private var messages: [Message] = []
    private var free: [Int32] = []
    /// Incremented whenever a place becomes free or grows. A caller that remembers places by index compares this to see
    /// that one may have other bytes now.
    package private(set) var changes = 0

    package init() {}

    /// The number of messages pending now.
    package var count: Int { messages.count - free.count }

    /// Stores a frame without references; `retain` adds one for each socket that it is pending for.
    package mutating func insert(_ frame: Frame) -> Int32 {
        if let place = free.popLast() {
            messages[Int(place)].bytes = frame.bytes
            return place
        }
        messages.append(Message(bytes: frame.bytes))
        return Int32(messages.count - 1)
    }

    /// Appends a frame to a message.
    package mutating func extend(_ place: Int32, with frame: Frame) {
        if messages[Int(place)].ends.isEmpty { messages[Int(place)].ends.append(messages[Int(place)].bytes.count) }
        messages[Int(place)].bytes += frame.bytes
        messages[Int(place)].ends.append(messages[Int(place)].bytes.count)
        changes += 1
    }

    package mutating func retain(_ place: Int32, times: Int) {
        messages[Int(place)].references += Int32(times)
        if messages[Int(place)].references == 0 { discard(place) }
    }

    package mutating func release(_ place: Int32) {
        messages[Int(place)].references -= 1
        if messages[Int(place)].references == 0 { discard(place) }
    }

    private mutating func discard(_ place: Int32) {
        messages[Int(place)].bytes = []
        messages[Int(place)].ends = []
        changes += 1
        free.append(place)
    }

    package func bytes(_ place: Int32) -> [UInt8] { messages[Int(place)].bytes }

    package func withBytes<Result>(_ place: Int32, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        messages[Int(place)].bytes.withUnsafeBytes(body)
    }

    package func length(_ place: Int32) -> Int { messages[Int(place)].bytes.count }

    /// The end of the frame that contains the byte at `offset`.
    package func frameEnd(_ place: Int32, at offset: Int) -> Int {
        messages[Int(place)].ends.first { $0 > offset } ?? messages[Int(place)].bytes.count
    }

    /// The number of frames that end in `range`, whose bounds are ends of frames.
    package func frames(_ place: Int32, in range: Range<Int>) -> Int {
        let ends = messages[Int(place)].ends
        guard !ends.isEmpty else { return range.isEmpty ? 0 : 1 }
        // Nearly always, all frames are written at once.
        if range.lowerBound == 0, range.upperBound == ends.last { return ends.count }
        return ends.count { range.lowerBound < $0 && $0 <= range.upperBound }
    }
}
