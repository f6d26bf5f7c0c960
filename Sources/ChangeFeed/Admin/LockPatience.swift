import Postgres

/// How a command waits for a table that is in use.
///
/// Whoever waits for a lock makes all wait who come after him and want a weaker one, though the holder would not mind
/// them. So a command waits for moments only, and leaves pauses in which the writers that came meanwhile get on.
package struct LockPatience: Sendable {
    /// The longest that it stands in the queue, and writers behind it.
    package var turn: Duration = .milliseconds(200)
    /// The first pause; doubled up to `longestPause`.
    package var firstPause: Duration = .milliseconds(400)
    package var longestPause: Duration = .seconds(3)
    /// For one table, all in all.
    package var total: Duration

    package init(total: Duration = .seconds(60)) { self.total = total }

    /// As `lock_timeout` is set, in whole milliseconds.
    var turnText: String { "\(Int(turn / .milliseconds(1)))ms" }
}
