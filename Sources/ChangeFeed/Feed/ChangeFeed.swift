import Glibc
import Hub
package import Logging
import Postgres
import Workers

/// Reads the committed changes of watched tables and hands them to its consumer, in order and without loss.
///
/// Within one process, nothing is repeated either. A new process starts at the cursor that its predecessor stored, and
/// after a crash may repeat the changes of the last moments.
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
    ///   - inbox: holds work that the consumer leaves for the feed's thread.
    ///   - places: records how far the feed was at which time.
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

    /// Starts the thread, which connects and keeps trying. Call it once in the life of a feed.
    package func start() {
        let (configuration, logger, consumer) = (configuration, logger, consumer)
        let (inbox, places, published) = (inbox, places, published)
        thread.start {
            FeedLoop(
                configuration: configuration, logger: logger, consumer: consumer, inbox: inbox, places: places,
                published: published
            ).runUntilStopped()
        }
    }

    /// Finishes the current window (unless the database does not answer), stores the cursor and joins the thread. Never
    /// call it from the consumer.
    package func stop() {
        inbox.stop()
        thread.join()
    }

    /// Posts work for the feed's thread; see `FeedInbox`.
    package func postWork(_ work: @escaping FeedWork) { inbox.postWork(work) }

    /// Posts work that may query the database; see `FeedInbox`.
    package func postIdleWork(_ work: @escaping FeedWork) { inbox.postIdleWork(work) }

    /// The current status; from any thread.
    package var status: FeedStatus { published.status }
    /// Time since the feed was last known to have handed on everything: the lag of changes, or without any the time since
    /// the last poll, up to `rhythm.safety`. Nil while the feed is down. From any thread.
    package var behind: Duration? { published.levelAt.map { .now - $0 } }
    /// Counters; from any thread, slightly out of date.
    package var statistics: FeedStatistics { published.statistics }
}

/// The life of the feed's thread: connect, serve until something breaks, wait, repeat.
final class FeedLoop {
    let configuration: FeedConfiguration
    let logger: Logger
    let consumer: any FeedConsumer
    let inbox: FeedInbox
    let published: Published<FeedReport>
    let state: FeedState
    /// The start of a run of connections that read no window to its end; a further connection does not restart it.
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

    func runUntilStopped() {
        while !inbox.isStopping {
            do {
                try FeedSession(loop: self).serve()
            } catch {
                if inbox.isStopping { break }
                reportDown(because: error)
                serveInboxOnly(for: state.retry.attemptFailed(at: .now))
            }
        }
        reportStatus(.stopped)
        let context = FeedContext(catalog: state.tables.catalog, status: published.status)
        for work in inbox.close() { work(context) }
    }

    func reportStatus(_ status: FeedStatus) {
        let old = published.status
        guard old != status else { return }
        published.status = status
        // The lag counts from the first connection of the run, until a window has been read to its end.
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

    /// Records that everything readable when a poll began has been handed on.
    func recordLevel(at began: ContinuousClock.Instant) {
        stalledSince = nil
        published.levelAt = began
    }

    func publishStatistics() {
        published.statistics = state.statistics
    }

    /// Runs posted work that needs no database.
    func serveAnytimeWork() {
        let locate: (RecoveryPoint) -> String? = { [state] point in
            state.epochs.current.flatMap { epoch in state.recovery.withPoints { $0.locate(point, in: epoch)?.text } }
        }
        let context = FeedContext(catalog: state.tables.catalog, status: published.status, locate: locate)
        for work in inbox.takeAnytimeWork() { work(context) }
    }

    private func serveInbox() {
        serveAnytimeWork()
        let context = FeedContext(catalog: state.tables.catalog, status: published.status)
        for work in inbox.takeIdleWork() { work(context) }
        refuseWindows()
    }

    /// Refuses all callers that wait for a window: there is no database to read one from.
    private func refuseWindows() {
        for waiter in inbox.takeWindowWaiters() { waiter(false) }
    }

    private func reportDown(because error: any Error) {
        let reason = (error as? PostgresError)?.message ?? String(describing: error)
        reportStatus(.connecting(reason: reason))
    }

    private func serveInboxOnly(for duration: Duration) {
        let end = ContinuousClock.now + duration
        while !inbox.isStopping, ContinuousClock.now < end {
            serveInbox()
            var polled = [pollfd(fd: inbox.descriptor, events: Int16(POLLIN), revents: 0)]
            _ = poll(&polled, 1, milliseconds(until: end))
        }
    }
}

/// Counters since the feed was created.
package struct FeedStatistics: Sendable, Equatable {
    package var changes = 0
    /// Skipped changes of unheard tables; at most `WindowStatements.mostPassed` count per window.
    package var passed = 0
    /// Windows read, including empty ones.
    package var polls = 0
    package var rings = 0
    package var dozes = 0
    /// Rows for which no writer rang; anything but 0 is a bug worth reporting.
    package var missedRings = 0
    package var connections = 0
    /// Changes of tables that are no longer watched.
    package var orphans = 0
    package var pruned = 0
    /// Tables and partitions whose capture was found interrupted; among several hubs, only one counts each.
    package var interruptions = 0
    /// Watched tables whose changes are currently lost or duplicated.
    package var faultyTables = 0

    /// Scans for missed changes, each on behalf of all waiting members.
    package var recoveryReads = 0

    package init() {}
}

/// The part of the feed's state that other threads may read.
struct FeedReport: Sendable {
    var status = FeedStatus.connecting(reason: nil)
    var statistics = FeedStatistics()
    /// The time when everything readable had been handed on; nil while the feed is down.
    var levelAt: ContinuousClock.Instant?
}
