package import Hub
package import Logging
import Postgres
import Synchronization

/// Row changes for the hubs of all loops: reads them from Postgres, and delivers them to subscribers.
///
/// Everything happens on the feed's thread, between its reads: a subscription that is answered `live` is in the index
/// before anything later is read, so it misses no commit after the answer. Methods may be called from any thread.
package final class ChangeService: ChangeSource {
    private let configuration: FeedConfiguration
    private let logger: Logger
    let inbox = FeedInbox()
    let dispatcher: ChangeDispatcher
    private let feed: ChangeFeed
    private let outboxGauge: OutboxGauge
    /// True if the last attempt to withdraw the list of sessions failed.
    private let isListStuck = Mutex(false)

    /// - Parameters, all except `places` called from the feed's thread:
    ///   - observer: takes changes besides the subscribers.
    ///   - places: records how far the feed was at which time; nil if no one else reads it.
    ///   - oldestMark: the oldest mark from which members may still recover; nil if none may.
    ///   - whenMarked: everything up to this mark was handed on.
    ///   - whenFirst: no hub of this name served the database before.
    package init(
        configuration: FeedConfiguration, sink: any ChangeSink, observer: (any ChangeObserver)? = nil, logger: Logger,
        places: RecoveryPlaces? = nil,
        oldestMark: @escaping @Sendable () -> Int? = { nil },
        whenMarked: @escaping @Sendable (Int) -> Void = { _ in },
        whenFirst: @escaping @Sendable () -> Void = {},
        whenStatusChanges: @escaping @Sendable (FeedStatus) -> Void
    ) {
        self.configuration = configuration
        self.logger = logger
        outboxGauge = OutboxGauge(logger: logger)
        let hooks = ChangeDispatcher.Hooks(
            oldestMark: oldestMark, whenMarked: whenMarked, whenFirst: whenFirst,
            whenStatusChanges: whenStatusChanges)
        dispatcher = ChangeDispatcher(
            configuration, sink: sink, observer: observer, hooks: hooks, inbox: inbox, logger: logger)
        feed = ChangeFeed(
            configuration: configuration, logger: logger, consumer: dispatcher, inbox: inbox,
            places: places ?? RecoveryPlaces(window: configuration.recoveryWindow))
    }

    /// Starts reading. Call it once.
    package func start() { feed.start() }

    /// Stores the cursor and joins the feed's thread. The loops must still be running: the feed may be waiting for them.
    package func stop() {
        dispatcher.stop()
        feed.stop()
        dispatcher.join()
    }

    // MARK: Figures

    package var visibilityStatistics: VisibilityStatistics { dispatcher.pipeline.statistics.withLock { $0 } }

    package var status: FeedStatus { feed.status }

    /// The last measurement; nil on the first call, which starts one.
    package var outbox: OutboxFigures? { outboxGauge.latestFigures(asking: inbox) }

    /// Number of changes that wait for Postgres to decide filters; other changes do not wait for them.
    package var undecidedChanges: Int { dispatcher.undecidedCount.withLock { $0 } }

    /// Number of filters given up, by reason.
    package var filterEnds: [FilterEnd: Int] { dispatcher.budget.ends }

    /// Number of this process's statements that were given up and cancelled.
    package var abandonedStatements: Int { AbandonedStatements.shared.total }

    package var statistics: FeedStatistics { feed.statistics }

    /// See `ChangeFeed.behind`.
    package var behind: Duration? { feed.behind }

    // MARK: From the loops

    package func subscribe(_ id: ChangeGroupID, _ subscription: ChangeSubscription) {
        inbox.postWork { [dispatcher] in dispatcher.subscriptions.subscribe(id, subscription, $0) }
    }

    package func unsubscribe(_ id: ChangeGroupID) {
        inbox.postWork { [dispatcher] _ in dispatcher.subscriptions.registry.removeGroup(id) }
    }

    package func admitClaims(_ claims: Claims, to id: ChangeGroupID) {
        inbox.postWork { [dispatcher] _ in dispatcher.admitClaims(claims, to: id) }
    }

    package func withdrawClaims(_ claims: Claims, from id: ChangeGroupID) {
        inbox.postWork { [dispatcher] _ in dispatcher.subscriptions.registry.withdrawClaims(claims, from: id) }
    }

    package func startRecovery(_ id: RecoveryID, _ question: RecoveryQuestion) {
        inbox.postWork { [dispatcher] in dispatcher.scheduler.addMember(id, question, $0) }
    }

    package func abandonRecovery(_ id: RecoveryID) {
        inbox.postWork { [dispatcher] _ in dispatcher.scheduler.abandonMember(id) }
    }

    /// Converts points of this process to cursors that every hub of the database understands; nil for points that are not
    /// known.
    ///
    /// - Parameter done: called on the feed's thread; never, if the thread has ended.
    package func locate(_ points: [RecoveryPoint], then done: @escaping @Sendable ([String?]) -> Void) {
        inbox.postWork { context in done(points.map { context.locate($0) }) }
    }

    /// Reads a window that begins after the call, and hands it to the loops.
    ///
    /// - Parameter done: called once on the feed's thread: with false if the database is unreachable, or if Postgres has
    ///   yet to decide filters of changes that were read.
    package func awaitWindow(_ done: @escaping @Sendable (Bool) -> Void) {
        inbox.awaitWindow { [dispatcher] isRead in done(isRead && dispatcher.undecidedCount.withLock { $0 } == 0) }
    }

    /// Marks the list of served sessions (`SessionWriter`) as no longer complete, on the feed's own connection: if that
    /// fails too, either no changes flow or nothing can be written.
    ///
    /// - Parameter whenDone: called on the feed's thread, with true if the list certainly no longer counts as complete.
    package func withdrawSessionList(whenDone: @escaping @Sendable (Bool) -> Void) {
        let isPosted = inbox.postIdleWork { [self] context in
            guard context.canQuery else { return whenDone(false) }
            do {
                let isMoved = try !context.query(SessionListSQL.withdrawList.text, [configuration.node]).isEmpty
                isListStuck.withLock { $0 = false }
                whenDone(isMoved)
            } catch {
                let isNews = isListStuck.withLock { isStuck in
                    defer { isStuck = true }
                    return !isStuck
                }
                if isNews {
                    logger.warning(
                        """
                        New clients are refused row changes: the hub cannot record that it serves them, so it would \
                        forget them if it were killed. \(error)
                        """)
                }
                whenDone(false)
            }
        }
        if !isPosted { whenDone(false) }
    }
}
