/// How long to wait before the next attempt: twice as long each time, up to a ceiling, spread at random so that many
/// who wait do not come back at once.
struct Backoff: Sendable {
    /// Milliseconds.
    let first: Int64
    let ceiling: Int64
    /// Whether half of the time is certain; otherwise it may be none at all.
    let isAtLeastHalf: Bool

    /// Connections: full jitter.
    static let connecting = Backoff(first: 1000, ceiling: 15_000, isAtLeastHalf: false)
    /// Notifications of one lane; for a busy server Apple advises 15 minutes.
    static let sending = Backoff(first: 1000, ceiling: 900_000, isAtLeastHalf: true)

    /// - Parameter attempt: how many failed, from 1.
    func delay(after attempt: Int, using random: inout some RandomNumberGenerator) -> Int64 {
        let limit = min(ceiling, first << Int64(min(max(attempt, 1) - 1, 20)))
        return Int64.random(in: (isAtLeastHalf ? limit / 2 : 0)...limit, using: &random)
    }
}
