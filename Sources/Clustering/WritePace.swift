/// When the next call that writes to the log may go: not sooner than a pause after the last one, so that a busy hub's messages share
/// calls, each of which costs Redis and all hubs as much as ten messages do. A message that comes after a longer silence goes at once.
struct WritePace {
    typealias Instant = ContinuousClock.Instant

    static let pause = Duration.microseconds(700)
    private(set) var opensAt = Instant.now
    private var isBusy = false

    func isHeld(at now: Instant) -> Bool { now < opensAt }

    /// Whether what loops say need not wake the thread: a busy hub's say something within each pause, and at its end the first of them
    /// wakes it for all.
    func isDeaf(at now: Instant) -> Bool { isBusy && isHeld(at: now) }

    /// A call went, with so many messages.
    mutating func wrote(_ count: Int, at now: Instant) {
        opensAt = now + Self.pause
        isBusy = count > 1
    }

    /// Something came within a pause.
    mutating func waits() { isBusy = true }
}
