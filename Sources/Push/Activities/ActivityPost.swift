package import Hub
package import Wire

/// The state of an activity as posted by a backend.
package struct ActivityPost: Sendable {
    package let content: PostedState
    package let event: ActivityEvent
    /// The time when the state was true, in seconds since 1970; nil for the time of arrival.
    package let timestamp: Int64?
    package let alert: ActivityAlert?
    /// With `end`: the time when the activity leaves the lock screen, in seconds since 1970.
    package let dismissal: Int64?

    package init(
        _ content: PostedState, event: ActivityEvent = .update, timestamp: Int64? = nil, alert: ActivityAlert? = nil,
        dismissal: Int64? = nil
    ) {
        self.content = content
        self.event = event
        self.timestamp = timestamp
        self.alert = alert
        self.dismissal = dismissal
    }

    /// Makes a state that is entirely the backend's.
    package init(
        contentState: JSON, event: ActivityEvent = .update, timestamp: Int64? = nil, alert: ActivityAlert? = nil,
        dismissal: Int64? = nil
    ) {
        self.init(
            PostedState(contentState), event: event, timestamp: timestamp, alert: alert, dismissal: dismissal)
    }
}

/// The scheduler's decision about a post.
package enum PostVerdict: Sendable, Equatable {
    /// The state will be pushed.
    case queued
    /// The app's socket is alive, or its grace window is open: the state goes by socket, and is pushed if the app goes away for good.
    case withheld
    /// The post is dropped, because it is not newer than the last state sent or posted, or because the activity has ended.
    case stale
    /// There is no such activity.
    case unknown
    /// The state cannot be sent; one sentence gives the reason.
    case refused(String)
}
