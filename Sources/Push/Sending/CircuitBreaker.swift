/// Stops what cannot succeed before the operator does something, and finds out by itself when that is done.
struct CircuitBreaker: Sendable {
    /// A push a minute is tried.
    static let probeInterval: Int64 = 60_000

    /// Why it is open; nil where it is closed.
    private(set) var reason: String?
    private var nextProbe: Int64 = 0

    var isOpen: Bool { reason != nil }

    /// - Returns: true where this opened it, or the reason is another one: time to tell the operator.
    mutating func fail(_ reason: String, at now: Int64) -> Bool {
        guard reason != self.reason else { return false }
        self.reason = reason
        nextProbe = now + Self.probeInterval
        return true
    }

    /// - Returns: true where it was open.
    mutating func succeed() -> Bool {
        defer { reason = nil }
        return reason != nil
    }

    func allows(at now: Int64) -> Bool { reason == nil || now >= nextProbe }

    /// One is sent while it is open.
    mutating func probed(at now: Int64) { nextProbe = now + Self.probeInterval }

    var nextDue: Int64? { reason == nil ? nil : nextProbe }
}
