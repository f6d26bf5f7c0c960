/// Whether the feed delivers; for the log, `/readyz` and the dashboard.
package enum FeedStatus: Sendable, Equatable {
    /// Not connected. The reason is a sentence that says what to do; nil before the first attempt failed.
    case connecting(reason: String?)
    /// Every commit from here on is delivered.
    case ready
    case stopped
}
