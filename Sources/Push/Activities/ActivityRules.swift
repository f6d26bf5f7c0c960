/// When the states of Live Activities go out, and what they look like. Times are in milliseconds where nothing else is
/// said.
package struct ActivityRules: Sendable {
    package let content: ContentTemplate
    /// For how long nothing must have changed before a state goes out.
    package var quiet: Int64 = 2_000
    /// How old a change may get before it goes out, even if others follow it.
    package var ceiling: Int64 = 10_000
    /// How long after the last state the phone marks an activity as out of date. In seconds.
    package var staleAfter: Int64 = 15 * 60
    /// How old an activity gets: the system ends it then (Apple: 8 hours), and the hub ends it with its last state.
    package var lifetime: Int64 = 8 * 3_600_000
    /// How long after its life an activity is forgotten that cannot be ended, because its app is connected or Apple
    /// does not answer: the system has taken it away by then (Apple: 4 hours).
    package var afterlife: Int64 = 4 * 3_600_000
    /// How long an activity that the hub has ended stays on the lock screen. In seconds.
    package var dismissAfter: Int64 = 0
    /// How long a push that was not answered waits before it goes again: the lower bound, twice as long each time, up
    /// to the upper bound.
    package var retry: ClosedRange<Int64> = 2_000...60_000
    /// How far the clock of a backend that posts may be ahead of the hub's. In seconds.
    package var skew: Int64 = 300

    package init(content: ContentTemplate) { self.content = content }

    func retryDelay(attempt: Int) -> Int64 {
        min(retry.upperBound, retry.lowerBound << Int64(min(max(attempt - 1, 0), 20)))
    }
}

/// What an activity scheduler has done since it was made, for the metrics.
package struct ActivityStatistics: Sendable, Equatable {
    /// States that were handed over to be pushed, ends and those that say that the app is not connected included.
    package internal(set) var pushed = 0
    /// States that were shown by socket.
    package internal(set) var shown = 0
    /// States that were not sent because they were equal to the last one.
    package internal(set) var suppressed = 0
    /// Pushes that were ready to leave when the app came back.
    package internal(set) var withdrawn = 0
    /// Pushes of which nobody knows whether they arrived: the latest state went again.
    package internal(set) var unanswered = 0
    /// Posts that were not newer than the last.
    package internal(set) var stalePosts = 0
    /// Posts to activities that are not known.
    package internal(set) var unknownPosts = 0
    /// States that could not be pushed, such as those that were too large.
    package internal(set) var unsendable = 0

    package init() {}
}
