/// What came by a connection and is not used up: what was not looked at, or belongs to a head that is not complete.
struct UnreadBytes: Sendable {
    private var bytes: [UInt8] = []
    /// How much is used up: to cut it off for each of many short requests would move all that follow.
    private var used = 0

    var isEmpty: Bool { bytes.isEmpty }
    var count: Int { bytes.count - used }
    var all: [UInt8] { Array(bytes[used...]) }

    func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        bytes.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[used...])) }
    }

    /// Puts what came now behind the rest.
    mutating func keep(_ input: inout UnsafeRawBufferPointer) {
        guard !input.isEmpty else { return }
        bytes.removeFirst(used)
        used = 0
        bytes.append(contentsOf: input)
        input = UnsafeRawBufferPointer(rebasing: input[input.count...])
    }

    /// Takes what was used off the front: of these bytes, or of what came now where there are none.
    mutating func consume(_ count: Int, _ input: inout UnsafeRawBufferPointer) {
        guard !bytes.isEmpty else {
            input = UnsafeRawBufferPointer(rebasing: input[count...])
            return
        }
        used += count
        if used == bytes.count { drop() }
    }

    /// Drops all, and what came now.
    mutating func discard(_ input: inout UnsafeRawBufferPointer) {
        drop()
        input = UnsafeRawBufferPointer(rebasing: input[input.count...])
    }

    mutating func drop() {
        bytes = []
        used = 0
    }
}
