/// Whether the subscribers got everything once and in order: each expects 0, 1, 2, … of its conversation.
struct SequenceCheck {
    private var next: [Int]
    /// What was skipped and may still come, by subscriber.
    private var skipped: [Int: Set<Int>] = [:]
    private(set) var received = 0
    private(set) var repeated = 0
    private(set) var outOfOrder = 0

    init(subscribers: Int) {
        next = [Int](repeating: 0, count: subscribers)
    }

    /// - Returns: whether this is the first time that `number` came.
    mutating func take(_ number: Int, by slot: Int) -> Bool {
        let expected = next[slot]
        if number >= expected {
            if number > expected { skipped[slot, default: []].formUnion(expected..<number) }
            next[slot] = number + 1
        } else if skipped[slot]?.remove(number) != nil {
            outOfOrder += 1
        } else {
            repeated += 1
            return false
        }
        received += 1
        return true
    }
}
