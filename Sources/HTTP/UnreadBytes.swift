/// Received bytes of a connection that are not used up: they were not looked at, or belong to an incomplete head.
struct UnreadBytes: Sendable {
    private var bytes: [UInt8] = []
    /// The number of bytes used up. Cutting them off after each of many short requests would move all the bytes behind
    /// them.
    private var used = 0

    var isEmpty: Bool { bytes.isEmpty }
    var count: Int { bytes.count - used }
    var all: [UInt8] { Array(bytes[used...]) }

    func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        bytes.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[used...])) }
    }

    /// Appends the new input to the rest.
    mutating func keep(_ input: inout UnsafeRawBufferPointer) {
        guard !input.isEmpty else { return }
        bytes.removeFirst(used)
        used = 0
        bytes.append(contentsOf: input)
        input = UnsafeRawBufferPointer(rebasing: input[input.count...])
    }

    /// Removes used bytes from the front: of the stored bytes, or of the new input if nothing is stored.
    mutating func consume(_ count: Int, _ input: inout UnsafeRawBufferPointer) {
        guard !bytes.isEmpty else {
            input = UnsafeRawBufferPointer(rebasing: input[count...])
            return
        }
        used += count
        if used == bytes.count { drop() }
    }

    /// Drops everything, including the new input.
    mutating func discard(_ input: inout UnsafeRawBufferPointer) {
        drop()
        input = UnsafeRawBufferPointer(rebasing: input[input.count...])
    }

    mutating func drop() {
        bytes = []
        used = 0
    }
}
