/// How long to wait before the next attempt to connect: 1 s doubling to 15 s, each anywhere between 0 and that.
///
/// The longest is 15 times the first, so that whoever retries sooner at first does so later, too.
package struct Backoff: Sendable {
    private let first: Duration
    private let longest: Duration
    private var ceiling: Duration
    private var connectedAt: ContinuousClock.Instant?

    package init(first: Duration = .seconds(1)) {
        self.first = first
        ceiling = first
        longest = first * 15
    }

    package mutating func connected(at now: ContinuousClock.Instant) {
        connectedAt = now
    }

    /// - Parameter random: in 0..<1. Full jitter, so that many hubs do not come back to a database at once.
    package mutating func failed(at now: ContinuousClock.Instant, random: Double) -> Duration {
        // A connection that breaks at once is no success: it must not reset the wait.
        if let connectedAt, now - connectedAt >= .seconds(10) { ceiling = first }
        connectedAt = nil
        defer { ceiling = min(ceiling * 2, longest) }
        return ceiling * random
    }
}
