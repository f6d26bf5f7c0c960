/// Whether one subscriber gets the messages of one stream once and in order, in constant memory.
///
/// It knows the numbers of the last 64 messages one by one; what is older is judged by whether anything is missing.
struct SequenceWindow {
    enum Verdict {
        case inOrder, late, repeated
        /// From before the subscriber's time: it need not have come, and nothing is wrong.
        case before
    }
    /// The first number that has to come; what is issued while a join is under way may or may not.
    private var base: UInt32 = 0
    private var next: UInt32 = 0
    /// How many numbers from `base` on have come.
    private var received: UInt32 = 0
    /// Bit n: whether number `next - 1 - n` has come.
    private var recent: UInt64 = 0

    /// Begins anew with a subscriber for whom `number` is the first that was issued after it joined.
    mutating func begin(at number: Int) {
        base = UInt32(truncatingIfNeeded: number)
        (next, received, recent) = (base, 0, 0)
    }

    mutating func take(_ number: Int) -> Verdict {
        let number = UInt32(truncatingIfNeeded: number)
        guard number >= base else { return .before }
        if number >= next {
            let step = UInt64(number - next) + 1
            recent = (step < 64 ? recent << step : 0) | 1
            next = number + 1
            received += 1
            return .inOrder
        }
        let age = next - 1 - number
        let isMissing = age < 64 ? recent & 1 << UInt64(age) == 0 : received < next - base
        guard isMissing else { return .repeated }
        if age < 64 { recent |= 1 << UInt64(age) }
        received += 1
        return .late
    }

    /// How many have not come of those that were issued before `end`; without one, of those before the last that came.
    func missing(before end: Int? = nil) -> Int {
        let end = end.map { max(UInt32(truncatingIfNeeded: $0), base) } ?? next
        return Int(max(end, next) - base) - Int(received)
    }

    /// How many numbers lie between the first that had to come and the last that came.
    var span: Int { Int(next - base) }

    /// How many should have come of those issued before `end`.
    func expected(before end: Int) -> Int { max(0, end - Int(base)) }
}

/// What became of the messages that subscribers were owed.
struct DeliveryCount: Codable, Sendable, Equatable {
    /// Messages that had to come, each counted once.
    var delivered = 0
    var repeated = 0
    var outOfOrder = 0
    /// Messages of a channel that the socket never joined.
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
