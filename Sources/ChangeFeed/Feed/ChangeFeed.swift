import Hub
package import Logging
import Synchronization

/// Reads the committed changes of watched tables and hands them to its consumer, in order, none lost.
///
/// Inside one process nothing is repeated either. A new process starts at the cursor its predecessor stored, and
/// after a crash may repeat what was handed on in the last moments.
package final class ChangeFeed: Sendable {
    private let configuration: FeedConfiguration
    private let logger: Logger
    private let consumer: any FeedConsumer
    private let inbox = Inbox()
    private let thread = Mutex<FeedThread?>(nil)
    private let published = Published()

    package init(configuration: FeedConfiguration, logger: Logger, consumer: any FeedConsumer) {
        self.configuration = configuration
        self.logger = logger
        self.consumer = consumer
    }

    /// Starts the thread; it connects, and keeps trying. Once in the life of a feed.
    package func start() {
        let (configuration, logger, consumer) = (configuration, logger, consumer)
        let (inbox, published) = (inbox, published)
        thread.withLock { thread in
            guard thread == nil else { return }
            thread = FeedThread {
                FeedLoop(
                    configuration: configuration, logger: logger, consumer: consumer, inbox: inbox, published: published
                ).run()
            }
        }
    }

    /// Finishes the window at hand (a database that does not answer is left), stores the cursor and joins the thread.
    /// Never call it from the consumer.
    package func stop() {
        inbox.stop()
        let running = thread.withLock { thread in
            defer { thread = nil }
            return thread
        }
        running?.join()
    }

    /// Runs work on the feed's thread as soon as it waits for anything, also for an answer of the database and while
    /// there is none; such work cannot query. It may come between two batches of one window.
    package func perform(_ work: @escaping FeedWork) { inbox.post(work) }

    /// Runs work on the feed's thread between two windows, when it can query; and also while the database is away, when
    /// `context.canQuery` is false.
    package func performWhenIdle(_ work: @escaping FeedWork) { inbox.postWhenIdle(work) }

    /// From any thread.
    package var status: FeedStatus { published.status }
    /// How long ago what was handed on was all there was: the lag of changes, and while there are none the time since the
    /// last look, up to `rhythm.safety`. Nil while the feed is down. From any thread.
    package var behind: Duration? { published.levelAt.map { .now - $0 } }
    /// From any thread; a moment old.
    package var statistics: FeedStatistics { published.statistics }
}

/// Whether the feed delivers; for the log, `/readyz` and the dashboard.
package enum FeedStatus: Sendable, Equatable {
    /// Not connected. The reason is a sentence that says what to do; nil before the first attempt failed.
    case connecting(reason: String?)
    /// Every commit from here on is delivered.
    case ready
    case stopped
}

/// Counters since the feed was made.
package struct FeedStatistics: Sendable, Equatable {
    package var changes = 0
    /// Windows read, empty ones too.
    package var polls = 0
    package var rings = 0
    package var dozes = 0
    /// Rows nobody rang for; anything but 0 is a bug worth reporting.
    package var missedRings = 0
    package var connections = 0
    /// Changes of tables that are not watched any more.
    package var orphans = 0
    package var pruned = 0

    /// Readings of what members missed, each for all who waited.
    package var recoveryReads = 0

    package init() {}
}

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
