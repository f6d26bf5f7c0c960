import Wire

/// Frames that some connection of a loop has yet to take, each kept once however many wait for it.
///
/// A pending delivery is the number of a place here. Places are used again, so the table is as long as the most frames
/// that were ever pending at once.
struct MessageTable {
    private var frames: [[UInt8]] = []
    private var references: [Int32] = []
    private var free: [Int32] = []
    /// Grows whenever a place falls free: who remembers places by number knows by it that one may have another frame now.
    private(set) var discards = 0

    /// Frames pending now.
    var count: Int { frames.count - free.count }

    /// Keeps a frame that nobody waits for yet; `retain` it once for each who does.
    mutating func insert(_ frame: Frame) -> Int32 {
        if let place = free.popLast() {
            frames[Int(place)] = frame.bytes
            return place
        }
        frames.append(frame.bytes)
        references.append(0)
        return Int32(frames.count - 1)
    }

    mutating func retain(_ place: Int32, times: Int) {
        references[Int(place)] += Int32(times)
        if references[Int(place)] == 0 { discard(place) }
    }

    mutating func release(_ place: Int32) {
        references[Int(place)] -= 1
        if references[Int(place)] == 0 { discard(place) }
    }

    private mutating func discard(_ place: Int32) {
        frames[Int(place)] = []
        discards += 1
        free.append(place)
    }

    func bytes(_ place: Int32) -> [UInt8] { frames[Int(place)] }

    func withBytes<Result>(_ place: Int32, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        frames[Int(place)].withUnsafeBytes(body)
    }

    func length(_ place: Int32) -> Int { frames[Int(place)].count }
}
