/// How many users backends may have notified by one hub: so many at once, and then as many a second as Apple is sent in good time.
///
/// Pure: times are passed in, in monotonic milliseconds.
package struct NotificationBudget: Sendable {
    package static let perSecond = 1000
    /// What may be used at once.
    package static let most = 10_000
    /// What a call costs at least, however few users it names.
    package static let least = 10

    private var left = NotificationBudget.most
    private var at = Int64.min

    package init() {}

    /// Nil where a call may be answered; otherwise for how long its caller is to wait.
    package mutating func secondsUntilFree(at now: Int64) -> Int? {
        let passed = at == .min ? 0 : max(0, now - at)
        at = now
        left = min(Self.most, left + Int(min(passed, 1 << 32)) * Self.perSecond / 1000)
        guard left <= 0 else { return nil }
        return max(1, (Self.perSecond - left) / Self.perSecond)
    }

    /// - Parameter users: how many a call named.
    package mutating func spend(_ users: Int) { left -= max(Self.least, users) }
}
