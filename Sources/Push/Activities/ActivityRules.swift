/// When the states of Live Activities go out, and what they look like. Times are in milliseconds, where nothing else is
/// said.
package struct ActivityRules: Sendable {
    package let content: ContentTemplate
    /// A state goes out when nothing has changed for so long,
    package var quiet: Int64 = 2_000
    /// or when the first change that it tells is so old.
    package var ceiling: Int64 = 10_000
    /// After so long without news the phone marks an activity as out of date. In seconds.
    package var staleAfter: Int64 = 15 * 60
    /// The system ends an activity that is so old (Apple: 8 hours); the hub ends it then, with its last state.
    package var lifetime: Int64 = 8 * 3_600_000
    /// An activity that cannot be ended, because its app is connected or Apple does not answer, is forgotten so long
    /// after its life: the system has taken it away by then (Apple: 4 hours).
    package var afterlife: Int64 = 4 * 3_600_000
    /// An activity that the hub ends is taken from the lock screen so long after. In seconds.
    package var dismissAfter: Int64 = 0
    /// What was not answered goes again after so long, twice as long each time, up to the second figure.
    package var retry: ClosedRange<Int64> = 2_000...60_000
    /// How far the clock of a backend that posts may be ahead of the hub's. In seconds.
    package var skew: Int64 = 300

    package init(content: ContentTemplate) { self.content = content }

    func retryDelay(attempt: Int) -> Int64 {
        min(retry.upperBound, retry.lowerBound << Int64(min(max(attempt - 1, 0), 20)))
    }
}

/// What a scheduler has done since it was made, for the metrics.
package struct ActivityStatistics: Sendable, Equatable {
    /// States that were handed over to be pushed, Disconnected and ends included.
    package internal(set) var pushed = 0
    package internal(set) var shown = 0
    /// States that were not told because they were equal to the last one.
    package internal(set) var suppressed = 0
    /// Pushes that were ready to leave when the app came back.
    package internal(set) var withdrawn = 0
    /// Pushes of which nobody knows whether they arrived: the latest state went again.
    package internal(set) var unanswered = 0
    /// Posts that were not newer than the last, and posts to activities that are not known.
    package internal(set) var stalePosts = 0
    package internal(set) var unknownPosts = 0
    package internal(set) var unsendable = 0

    package init() {}
}
