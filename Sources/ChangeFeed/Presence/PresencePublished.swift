import Synchronization

/// What other threads may know of the keeper's.
final class PresencePublished: Sendable {
    private struct Content {
        var statistics = PresenceStatistics()
        var waitingSince: ContinuousClock.Instant?
    }

    private let content = Mutex(Content())

    func publish(_ statistics: PresenceStatistics, waitingSince: ContinuousClock.Instant?) {
        content.withLock { $0 = Content(statistics: statistics, waitingSince: waitingSince) }
    }

    var statistics: PresenceStatistics {
        content.withLock { content in
            var statistics = content.statistics
            statistics.oldestWaiting = content.waitingSince.map { .now - $0 }
            return statistics
        }
    }
}
