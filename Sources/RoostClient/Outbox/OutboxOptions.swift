/// How an outbox waits and what it holds.
public struct OutboxOptions: Sendable {
    /// How many payloads it holds, failed ones included; then `enqueue` throws ``OutboxError/full(waiting:failed:)``.
    public var capacity: Int
    /// How many lanes may send at the same time.
    public var concurrentSends: Int
    /// A send that takes longer is cancelled and counts as an error to be classified. It counts as running until the
    /// closure has ended, so that nothing is ever sent twice at the same time: the closure must end when cancelled, as
    /// URLSession does.
    public var sendTimeout: Duration
    /// The longest wait after the first error of a lane; it doubles with each one, up to `longestPause`. How long the
    /// wait is within that is random, so that clients do not come back all at once.
    public var firstPause: Duration
    public var longestPause: Duration

    public init(
        capacity: Int = 1_000, concurrentSends: Int = 4, sendTimeout: Duration = .seconds(30),
        firstPause: Duration = .seconds(1), longestPause: Duration = .seconds(15)
    ) {
        self.capacity = max(1, capacity)
        self.concurrentSends = max(1, concurrentSends)
        self.sendTimeout = sendTimeout
        self.firstPause = firstPause
        self.longestPause = max(firstPause, longestPause)
    }
}
