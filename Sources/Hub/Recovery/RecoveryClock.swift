/// The clock of the recovery window, which stands still while the feed is not ready.
///
/// Joins for row changes are refused then, so that nobody can come back, and nobody's time may run out. A value, kept
/// under the book's lock.
struct RecoveryClock {
    /// Since when it stands, in monotonic milliseconds; nil while it runs.
    private var stopped: Int64?
    /// For how long it stood before, in milliseconds.
    private var stood: Int64 = 0

    /// - Parameter isRunning: false before the feed is ready for the first time.
    init(isRunning: Bool) { stopped = isRunning ? nil : 0 }

    /// Its time, in milliseconds, when monotonic time is `now`.
    func time(at now: Int64) -> Int64 { (stopped ?? now) - stood }

    mutating func stop(at now: Int64) {
        if stopped == nil { stopped = now }
    }

    mutating func start(at now: Int64) {
        guard let stopped else { return }
        // Loops take the time one after the other.
        stood += max(0, now - stopped)
        self.stopped = nil
    }
}
