/// Rules for when the states of Live Activities are sent, and for their content. Times are in milliseconds unless noted otherwise.
package struct ActivityRules: Sendable {
    package let content: ContentTemplate
    /// A state is sent once nothing has changed for this long.
    package var quiet: Int64 = 2_000
    /// The longest that a change waits while others follow it.
    package var ceiling: Int64 = 10_000
    /// The time after the last state at which the phone marks an activity as out of date, in seconds.
    package var staleAfter: Int64 = 15 * 60
    /// The maximum age of an activity: the system ends it then (Apple: 8 hours), and the hub ends it with its last state.
    package var lifetime: Int64 = 8 * 3_600_000
    /// The time after its life at which the hub forgets an activity that cannot be ended, because its app is connected or Apple does
    /// not answer: the system has removed it by then (Apple: 4 hours).
    package var afterlife: Int64 = 4 * 3_600_000
    /// The time that an activity ended by the hub stays on the lock screen, in seconds.
    package var dismissAfter: Int64 = 0
    /// The delay before an unanswered push is sent again: the lower bound at first, doubled each time, up to the upper bound.
    package var retry: ClosedRange<Int64> = 2_000...60_000
    /// The clock of a posting backend may be ahead of the hub's by this much, in seconds.
    package var skew: Int64 = 300

    package init(content: ContentTemplate) { self.content = content }

    func retryDelay(attempt: Int) -> Int64 {
        min(retry.upperBound, retry.lowerBound << Int64(min(max(attempt - 1, 0), 20)))
    }
}

/// Counters of an activity scheduler since its creation, for the metrics.
package struct ActivityStatistics: Sendable, Equatable {
    /// States that were handed over to be pushed, including ends and those that report the app as disconnected.
    package internal(set) var pushed = 0
    /// States that were shown by socket.
    package internal(set) var shown = 0
    /// States that were not sent because they equalled the last one.
    package internal(set) var suppressed = 0
    /// Pushes that were ready to leave when the app came back.
    package internal(set) var withdrawn = 0
    /// Pushes that may or may not have arrived: the latest state was sent again.
    package internal(set) var unanswered = 0
    /// Posts that were not newer than the last.
    package internal(set) var stalePosts = 0
    /// Posts to unknown activities.
    package internal(set) var unknownPosts = 0
    /// States that could not be pushed, such as those that were too large.
    package internal(set) var unsendable = 0

    package init() {}
}
