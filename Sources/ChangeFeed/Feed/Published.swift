import Synchronization

/// What other threads may know of the feed's.
final class Published: Sendable {
    private struct Content {
        var status = FeedStatus.connecting(reason: nil)
        var statistics = FeedStatistics()
        var levelAt: ContinuousClock.Instant?
    }
    private let content = Mutex(Content())

    var status: FeedStatus {
        get { content.withLock { $0.status } }
        set { content.withLock { $0.status = newValue } }
    }

    /// When what has been handed on was all there was; nil while the feed is down.
    var levelAt: ContinuousClock.Instant? {
        get { content.withLock { $0.levelAt } }
        set { content.withLock { $0.levelAt = newValue } }
    }

    var statistics: FeedStatistics {
        get { content.withLock { $0.statistics } }
        set { content.withLock { $0.statistics = newValue } }
    }
}
