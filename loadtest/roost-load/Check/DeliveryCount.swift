/// What became of the messages that subscribers were owed.
struct DeliveryCount: Codable, Sendable, Equatable {
    /// Unique ones.
    var delivered = 0
    var repeated = 0
    var outOfOrder = 0
    /// Those of a channel that the socket never joined.
    var wrong = 0
    var lost = 0
    var expected = 0

    /// - Returns: whether it had to come and came for the first time.
    mutating func count(_ verdict: SequenceWindow.Verdict) -> Bool {
        switch verdict {
        case .repeated:
            repeated += 1
            return false
        case .before: return false
        case .late: outOfOrder += 1
        case .inOrder: break
        }
        delivered += 1
        return true
    }

    mutating func add(_ other: DeliveryCount) {
        delivered += other.delivered
        repeated += other.repeated
        outOfOrder += other.outOfOrder
        wrong += other.wrong
        lost += other.lost
        expected += other.expected
    }
}
