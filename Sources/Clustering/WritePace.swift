/// Paces the calls that write to the log: one at most in each pause, so that a busy hub's messages share calls, each of
/// which costs Redis and all hubs as much as ten messages. A message after a longer silence is sent at once.
struct WritePace {
    typealias Instant = ContinuousClock.Instant

    static let pause = Duration.microseconds(700)
    private(set) var opensAt = Instant.now
    private var isBusy = false

    func isHeld(at now: Instant) -> Bool { now < opensAt }

    /// Whether mail from loops need not wake the thread: while a hub is busy, each pause brings some, and one wake-up
    /// at its end serves all.
    func isDeaf(at now: Instant) -> Bool { isBusy && isHeld(at: now) }

    /// A call with `count` messages was sent.
    mutating func callSent(_ count: Int, at now: Instant) {
        opensAt = now + Self.pause
        isBusy = count > 1
    }

    /// A message arrived within a pause.
    mutating func markBusy() { isBusy = true }
}
