import Foundation

/// What waits in one lane, in order, and when its first may be sent.
struct OutboxLane {
    /// Without those that failed.
    var line: [UUID] = []
    var isSending = false
    /// Nothing is sent before; nil: at once.
    var opensAt: ContinuousClock.Instant?
    /// The network came back while a send was under way. If that send fails, it belonged to the old network: no wait.
    private var isHurried = false
    private var ceiling: Duration?

    func isReady(at now: ContinuousClock.Instant) -> Bool {
        !isSending && !line.isEmpty && opensAt.map { $0 <= now } ?? true
    }

    mutating func begin() {
        isSending = true
        opensAt = nil
        isHurried = false
    }

    /// The first of the line is settled; what follows is sent without a wait.
    mutating func settle() {
        isSending = false
        opensAt = nil
        ceiling = nil
    }

    /// - Returns: how long the lane waits.
    mutating func pause(at now: ContinuousClock.Instant, options: OutboxOptions, random: Double) -> Duration {
        isSending = false
        let ceiling = self.ceiling ?? options.firstPause
        self.ceiling = min(ceiling * 2, options.longestPause)
        let pause = isHurried ? .zero : ceiling * random
        isHurried = false
        opensAt = now + pause
        return pause
    }

    mutating func hurry() {
        opensAt = nil
        ceiling = nil
        isHurried = isSending
    }
}
