/// What the log is told of a round of deleting that takes long, as after an outage. Pure.
package struct PruneRound {
    package typealias Instant = ContinuousClock.Instant

    private var began: Instant?
    private var deleted = 0
    private var sayAt: Instant?
    private var hasSpoken = false
    /// Between two sentences, and before the first.
    private static let rhythm = Duration.seconds(10)

    package init() {}

    /// Takes a batch in.
    ///
    /// - Parameters:
    ///   - count: of the changes that it deleted.
    ///   - isLast: whether the round ends with it.
    /// - Returns: what is to be said now.
    package mutating func took(_ count: Int, isLast: Bool, at now: Instant) -> String? {
        let start = began ?? now
        began = start
        deleted += count
        let seconds = (now - start).components.seconds
        if isLast {
            defer { self = PruneRound() }
            return hasSpoken ? "Old changes are deleted: \(deleted), in \(seconds) s." : nil
        }
        guard now >= sayAt ?? start + Self.rhythm else { return nil }
        sayAt = now + Self.rhythm
        hasSpoken = true
        return "Old changes are being deleted: \(deleted) so far, in \(seconds) s."
    }
}
