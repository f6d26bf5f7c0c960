/// The head of a server's frame, and where its payload lies.
struct IncomingFrame {
    let opcode: UInt8
    let isFinal: Bool
    let payload: Range<Int>

    /// Nil while the frame that starts at `start` is incomplete.
    init?(in bytes: UnsafeRawBufferPointer, at start: Int) {
        let available = bytes.count - start
        guard available >= 2 else { return nil }
        var length = Int(bytes[start + 1] & 127)
        var head = 2
        if length == 126 {
            guard available >= 4 else { return nil }
            length = Int(bytes[start + 2]) << 8 | Int(bytes[start + 3])
            head = 4
        } else if length == 127 {
            guard available >= 10 else { return nil }
            length = (2..<10).reduce(0) { $0 << 8 | Int(bytes[start + $1]) }
            head = 10
        }
        guard available - head >= length else { return nil }
        opcode = bytes[start] & 15
        isFinal = bytes[start] & 0x80 != 0
        payload = (start + head)..<(start + head + length)
    }
}
