import Synchronization

/// What other threads may know of the feed's.
final class Published: Sendable {
    private let content = Mutex((status: FeedStatus.connecting(reason: nil), statistics: FeedStatistics()))

    var status: FeedStatus {
        get { content.withLock { $0.status } }
        set { content.withLock { $0.status = newValue } }
    }

    var statistics: FeedStatistics {
        get { content.withLock { $0.statistics } }
        set { content.withLock { $0.statistics = newValue } }
    }
}
