/// The members that a client of a channel knows of, in constant memory: the sum of their keys' hashes.
///
/// Two sets of members have the same sum, in practice, only if they are the same.
enum PresenceSum {
    /// FNV-1a.
    static func hash(_ key: some Sequence<UInt8>) -> UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in key { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        // So that the sum depends on all bits of each.
        return hash ^ (hash >> 29)
    }

    private static let joins = Needle("\"joins\":")
    private static let leaves = Needle("\"leaves\":")

    /// What a `presence_diff` adds.
    static func change(ofDiff frame: UnsafeRawBufferPointer) -> UInt64 {
        var change: UInt64 = 0
        if let start = joins.end(in: frame) { change &+= members(frame, at: start) }
        if let start = leaves.end(in: frame) { change &-= members(frame, at: start) }
        return change
    }

    /// The sum of the members in the first object from `start` on, `{key: {"metas": […]}}`; each meta counts.
    static func members(_ frame: UnsafeRawBufferPointer, at start: Int) -> UInt64 {
        var (sum, key): (UInt64, UInt64) = (0, 0)
        var depth = 0
        var at = start
        while at < frame.count, frame[at] != UInt8(ascii: "{") { at += 1 }
        while at < frame.count {
            switch frame[at] {
            case UInt8(ascii: "\""):
                let begin = at + 1
                at = endOfString(frame, from: begin)
                if depth == 1 { key = hash(UnsafeRawBufferPointer(rebasing: frame[begin..<min(at, frame.count)])) }
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                depth += 1
                // { key: { metas: [ { is the fourth.
                if depth == 4, frame[at] == UInt8(ascii: "{") { sum &+= key }
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                depth -= 1
                if depth == 0 { return sum }
            default: break
            }
            at += 1
        }
        return sum
    }

    /// The offset of the quote that ends the string.
    private static func endOfString(_ frame: UnsafeRawBufferPointer, from start: Int) -> Int {
        var at = start
        while at < frame.count, frame[at] != UInt8(ascii: "\"") { at += frame[at] == UInt8(ascii: "\\") ? 2 : 1 }
        return at
    }
}
