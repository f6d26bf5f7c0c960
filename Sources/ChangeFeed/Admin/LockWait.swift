/// The pauses between tries for a lock. Pure.
struct LockWait {
    private let patience: LockPatience
    private var end: ContinuousClock.Instant?
    private var pause: Duration

    init(_ patience: LockPatience) {
        self.patience = patience
        pause = patience.firstPause
    }

    /// How long to wait before the next try; nil where the patience is over.
    mutating func next(at now: ContinuousClock.Instant) -> Duration? {
        let end = end ?? now + patience.total
        self.end = end
        guard now < end else { return nil }
        defer { pause = min(pause * 2, patience.longestPause) }
        return min(pause, end - now)
    }
}
