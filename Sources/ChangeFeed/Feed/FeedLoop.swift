import Glibc
import Logging
import Postgres

/// The life of the feed's thread: connect, serve until something breaks, wait, again.
final class FeedLoop {
    let configuration: FeedConfiguration
    let logger: Logger
    let consumer: any FeedConsumer
    let inbox: Inbox
    let published: Published
    let state: FeedState

    init(
        configuration: FeedConfiguration, logger: Logger, consumer: any FeedConsumer, inbox: Inbox, published: Published
    ) {
        self.configuration = configuration
        self.logger = logger
        self.consumer = consumer
        self.inbox = inbox
        self.published = published
        state = FeedState(configuration)
    }

    func run() {
        while !inbox.isStopping {
            do {
                try FeedSession(loop: self).serve()
            } catch {
                if inbox.isStopping { break }
                lost(because: error)
                rest(for: state.backoff.failed(at: .now, random: .random(in: 0..<1)))
            }
        }
        report(.stopped)
        serveInbox()
    }

    func report(_ status: FeedStatus) {
        let old = published.status
        guard old != status else { return }
        published.status = status
        // From here on it has to show that it gets on; what was missed before counts, too.
        published.levelAt = status == .ready ? .now : nil
        switch status {
        case .ready:
            logger.info("The change feed is ready.", metadata: ["tables": "\(state.tables.catalog.tables.count)"])
        case .connecting(let reason?): logger.warning("The change feed is down, and keeps trying: \(reason)")
        case .connecting(nil), .stopped: break
        }
        consumer.statusChanged(status)
    }

    func publishStatistics() {
        published.statistics = state.statistics
    }

    /// Runs posted work that needs no database.
    func serveAnytimeWork() {
        let context = FeedContext(catalog: state.tables.catalog, status: published.status)
        for work in inbox.takeAnytime() { work(context) }
    }

    private func serveInbox() {
        serveAnytimeWork()
        let context = FeedContext(catalog: state.tables.catalog, status: published.status)
        for work in inbox.takeWhenIdle() { work(context) }
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
