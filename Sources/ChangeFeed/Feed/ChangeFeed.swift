import Glibc
import Hub
package import Logging
import Postgres
import Workers

/// Reads the committed changes of watched tables and hands them to its consumer, in order, none lost.
///
/// Inside one process nothing is repeated either. A new process starts at the cursor its predecessor stored, and
/// after a crash may repeat what was handed on in the last moments.
package final class ChangeFeed: Sendable {
    private let configuration: FeedConfiguration
    private let logger: Logger
    private let consumer: any FeedConsumer
    private let inbox: FeedInbox
    private let thread = WorkerThread(named: "roost-feed")
    private let places: RecoveryPlaces
    private let published = Published(FeedReport())

    package convenience init(configuration: FeedConfiguration, logger: Logger, consumer: any FeedConsumer) {
        self.init(
            configuration: configuration, logger: logger, consumer: consumer, inbox: FeedInbox(),
            places: RecoveryPlaces(window: configuration.recoveryWindow))
    }

    /// - Parameters:
    ///   - inbox: where its consumer leaves work for the feed's thread.
    ///   - places: where the feed says how far it was when.
    init(
        configuration: FeedConfiguration, logger: Logger, consumer: any FeedConsumer, inbox: FeedInbox,
        places: RecoveryPlaces
    ) {
        self.inbox = inbox
        self.places = places
        self.configuration = configuration
        self.logger = logger
        self.consumer = consumer
    }

    /// Starts the thread; it connects, and keeps trying. Once in the life of a feed.
    package func start() {
        let (configuration, logger, consumer) = (configuration, logger, consumer)
        let (inbox, places, published) = (inbox, places, published)
        thread.start {
            FeedLoop(
                configuration: configuration, logger: logger, consumer: consumer, inbox: inbox, places: places,
                published: published
            ).run()
        }
    }

    /// Finishes the window at hand (a database that does not answer is left), stores the cursor and joins the thread.
    /// Never call it from the consumer.
    package func stop() {
        inbox.stop()
        thread.join()
    }

    /// `FeedInbox.perform`.
    package func perform(_ work: @escaping FeedWork) { inbox.perform(work) }

    /// `FeedInbox.performWhenIdle`.
    package func performWhenIdle(_ work: @escaping FeedWork) { inbox.performWhenIdle(work) }

    /// From any thread.
    package var status: FeedStatus { published.status }
    /// How long ago what was handed on was all there was: the lag of changes, and while there are none the time since the
    /// last look, up to `rhythm.safety`. Nil while the feed is down. From any thread.
    package var behind: Duration? { published.levelAt.map { .now - $0 } }
    /// From any thread; a moment old.
    package var statistics: FeedStatistics { published.statistics }
}

/// The life of the feed's thread: connect, serve until something breaks, wait, again.
final class FeedLoop {
    let configuration: FeedConfiguration
    let logger: Logger
    let consumer: any FeedConsumer
    let inbox: FeedInbox
    let published: Published<FeedReport>
    let state: FeedState
    /// Since when connections have come that read no window to its end: each of them is no new beginning.
    private var stalledSince: ContinuousClock.Instant?

    init(
        configuration: FeedConfiguration, logger: Logger, consumer: any FeedConsumer, inbox: FeedInbox,
        places: RecoveryPlaces, published: Published<FeedReport>
    ) {
        self.configuration = configuration
        self.logger = logger
        self.consumer = consumer
        self.inbox = inbox
        self.published = published
        state = FeedState(configuration, places)
    }

    func run() {
        while !inbox.isStopping {
            do {
                try FeedSession(loop: self).serve()
            } catch {
                if inbox.isStopping { break }
                lost(because: error)
                rest(for: state.retry.failed(at: .now))
            }
        }
        report(.stopped)
        let context = FeedContext(catalog: state.tables.catalog, status: published.status)
        for work in inbox.close() { work(context) }
    }

    func report(_ status: FeedStatus) {
        let old = published.status
        guard old != status else { return }
        published.status = status
        // From here on it has to show that it gets on; what was missed before counts, too.
        if status == .ready { stalledSince = stalledSince ?? .now }
        published.levelAt = status == .ready ? stalledSince : nil
        switch status {
        case .ready:
            logger.info("The change feed is ready.", metadata: ["tables": "\(state.tables.catalog.tables.count)"])
        case .connecting(let reason?): logger.warning("The change feed is down; reconnecting: \(reason)")
        case .connecting(nil), .stopped: break
        }
        consumer.statusChanged(status)
    }

    /// All that there was to read when a poll began was handed on.
    func isLevel(at began: ContinuousClock.Instant) {
        stalledSince = nil
        published.levelAt = began
    }

    func publishStatistics() {
        published.statistics = state.statistics
    }

    /// Runs posted work that needs no database.
    func serveAnytimeWork() {
        let locate: (RecoveryPoint) -> String? = { [state] point in
            state.epochs.current.flatMap { epoch in state.recovery.use { $0.locate(point, in: epoch)?.text } }
        }
        let context = FeedContext(catalog: state.tables.catalog, status: published.status, locate: locate)
        for work in inbox.takeAnytime() { work(context) }
    }

    private func serveInbox() {
        serveAnytimeWork()
        let context = FeedContext(catalog: state.tables.catalog, status: published.status)
        for work in inbox.takeWhenIdle() { work(context) }
        refuseWindows()
    }

    /// There is no database to read a window from.
    private func refuseWindows() {
        for waiter in inbox.takeWindowWaiters() { waiter(false) }
    }

    private func lost(because error: any Error) {
        let reason = (error as? PostgresError)?.message ?? String(describing: error)
        report(.connecting(reason: reason))
    }

    private func rest(for duration: Duration) {
        let end = ContinuousClock.now + duration
        while !inbox.isStopping, ContinuousClock.now < end {
            serveInbox()
            var polled = [pollfd(fd: inbox.descriptor, events: Int16(POLLIN), revents: 0)]
            _ = poll(&polled, 1, milliseconds(until: end))
        }
    }
}

/// Counters since the feed was made.
package struct FeedStatistics: Sendable, Equatable {
    package var changes = 0
    /// Changes of tables that nobody heard, and that were not read; of one window `WindowStatements.mostPassed` count at most.
    package var passed = 0
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
    /// Tables and partitions whose capture was found to have been interrupted; of several hubs one counts them.
    package var interruptions = 0
    /// Watched tables of which changes are lost or come twice at present.
    package var faultyTables = 0

    /// Readings of what members missed, each for all who waited.
    package var recoveryReads = 0

    package init() {}
}

/// What other threads may know of the feed's.
struct FeedReport: Sendable {
    var status = FeedStatus.connecting(reason: nil)
    var statistics = FeedStatistics()
    /// When what has been handed on was all there was; nil while the feed is down.
    var levelAt: ContinuousClock.Instant?
}
