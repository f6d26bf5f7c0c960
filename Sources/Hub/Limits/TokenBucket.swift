/// A rate limit: a number of events per second in the long run, and a number at once after a quiet time.
package struct Rate: Sendable, Equatable {
    package let perSecond: Int
    package let burst: Int

    /// Nil if `perSecond` is zero: the rate is unlimited.
    package init?(perSecond: Int, burst: Int) {
        guard perSecond > 0 else { return nil }
        self.perSecond = perSecond
        self.burst = max(1, burst)
    }

    /// Returns the nanoseconds in which `count` tokens are replenished. The settings keep `count` times a billion
    /// within 64 bits.
    func time(for count: Int) -> Int64 { Int64(count) * 1_000_000_000 / Int64(perSecond) }
}

/// A token bucket in eight bytes: instead of a number of tokens and the time they were counted at, it stores the moment
/// at which the bucket is full again (the generic cell rate algorithm, ITU-T I.371, annex A).
///
/// Times are milliseconds on a clock that never goes back, as in `HubTime.monotonic`. A new bucket is full.
package struct TokenBucket: Sendable {
    /// Nanoseconds.
    private var fullAt = Int64.min

    package init() {}

    /// Takes `count` tokens if available.
    package mutating func takeTokens(_ count: Int = 1, of rate: Rate, at now: Int64) -> Bool {
        let now = now * 1_000_000
        let next = max(fullAt, now) + rate.time(for: count)
        guard next - now <= rate.time(for: rate.burst) else { return false }
        fullAt = next
        return true
    }

    /// Takes `count` tokens whether available or not.
    ///
    /// - Returns: milliseconds until none is owed, rounded up; zero if none is.
    package mutating func spendTokens(_ count: Int, of rate: Rate, at now: Int64) -> Int64 {
        let now = now * 1_000_000
        fullAt = max(fullAt, now) + rate.time(for: count)
        let owed = fullAt - now - rate.time(for: rate.burst)
        return owed <= 0 ? 0 : (owed + 999_999) / 1_000_000
    }
}
