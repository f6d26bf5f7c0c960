import CLoad

/// A text that is looked for in frames. Frames are scanned, never parsed: the tester has to be cheaper than the hub.
struct Needle: Sendable {
    private let bytes: [UInt8]

    init(_ text: String) { bytes = Array(text.utf8) }

    /// The offset behind the first occurrence that begins at `offset` or later.
    @inline(__always)
    func end(in frame: UnsafeRawBufferPointer, from offset: Int = 0) -> Int? {
        guard let start = frame.baseAddress, let hit = memmem(start + offset, frame.count - offset, bytes, bytes.count)
        else { return nil }
        return UnsafeRawPointer(hit) - start + bytes.count
    }

    func occurs(in frame: UnsafeRawBufferPointer) -> Bool { end(in: frame) != nil }
}
