package import Hub
package import Wire

/// A state that a backend says an activity has.
package struct ActivityPost: Sendable {
    package let content: PostedState
    package let event: ActivityEvent
    /// When the state was true, in seconds since 1970; nil is when it arrives.
    package let timestamp: Int64?
    package let alert: ActivityAlert?
    /// With `end`: when the activity is taken from the lock screen, in seconds since 1970.
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

    /// A state that is the backend's alone.
    package init(
        contentState: JSON, event: ActivityEvent = .update, timestamp: Int64? = nil, alert: ActivityAlert? = nil,
        dismissal: Int64? = nil
    ) {
        self.init(
            PostedState(contentState), event: event, timestamp: timestamp, alert: alert, dismissal: dismissal)
    }
}

/// What the scheduler does with a post.
package enum PostVerdict: Sendable, Equatable {
    /// The state will be pushed.
    case queued
    /// The app's socket is alive, or its grace window is open: the state goes by socket, and is pushed when the app
    /// goes away for good.
    case withheld
    /// The post is dropped, because it is not newer than what was sent or posted last, or the activity has ended.
    case stale
    /// There is no such activity.
    case unknown
    /// The state cannot be sent; one sentence says why.
    case refused(String)
}
