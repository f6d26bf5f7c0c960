/// Limits the number of users whom backends may notify through one hub: a burst, and then as many a second as can be sent to Apple in
/// good time.
///
/// Pure: times are passed in, in monotonic milliseconds.
package struct NotificationBudget: Sendable {
    package static let perSecond = 1000
    /// The size of the burst.
    package static let most = 10_000
    /// The least that a call costs, however few users it names.
    package static let least = 10

    private var left = NotificationBudget.most
    private var at = Int64.min

    package init() {}

    /// Returns nil if a call may be answered; otherwise the seconds that its caller should wait.
    package mutating func secondsUntilFree(at now: Int64) -> Int? {
        let passed = at == .min ? 0 : max(0, now - at)
        at = now
        left = min(Self.most, left + Int(min(passed, 1 << 32)) * Self.perSecond / 1000)
        guard left <= 0 else { return nil }
        return max(1, (Self.perSecond - left) / Self.perSecond)
    }

    /// - Parameter users: the number of users named by a call.
    package mutating func spend(_ users: Int) { left -= max(Self.least, users) }
}
