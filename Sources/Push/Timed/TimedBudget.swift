package import Wire

/// Limits the number of rows of which one user is alerted within a minute because their time has come: a user who may write rows may
/// write a million of them with one time, and the phones and alerts of others must not wait for these.
///
/// Pure: times are monotonic milliseconds that are passed in.
package struct TimedBudget: Sendable {
    /// More are of no use to a person.
    package static let mostPerMinute = 60
    private static let minute: Int64 = 60_000

    private var counts: [Name: Int] = [:]
    private var ends: Int64 = 0

    package init() {}

    /// Returns whether this user may be alerted of another row now; if so, the row counts.
    package mutating func admit(_ user: Name, at now: Int64) -> Bool {
        if now >= ends {
            counts = [:]
            ends = now + Self.minute
        }
        guard counts[user, default: 0] < Self.mostPerMinute else { return false }
        counts[user, default: 0] += 1
        return true
    }
}
