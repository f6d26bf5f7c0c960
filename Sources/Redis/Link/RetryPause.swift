/// The pause before the next attempt: 50 ms, doubling to 250 ms, each randomized between half and all of that, so that
/// hubs that were cut off together do not come back in step.
struct RetryPause {
    private let timeouts: RedisTimeouts
    private var ceiling: Duration
    private var readyAt: ContinuousClock.Instant?

    init(_ timeouts: RedisTimeouts) {
        self.timeouts = timeouts
        ceiling = timeouts.firstRetry
    }

    /// An attempt succeeded. The pauses become short again only once the connection has lasted.
    mutating func connectionOpened(at now: ContinuousClock.Instant) { readyAt = now }

    /// - Parameter random: in 0..<1.
    /// - Returns: when to try again.
    mutating func attemptFailed(at now: ContinuousClock.Instant, random: Double) -> ContinuousClock.Instant {
        if let readyAt, now - readyAt >= timeouts.stable { ceiling = timeouts.firstRetry }
        readyAt = nil
        defer { ceiling = min(ceiling * 2, timeouts.longestRetry) }
        return now + ceiling * (0.5 + random / 2)
    }
}
