package import Hub
package import Logging
import Postgres
import Workers

/// Listens to an application's own Postgres channels (NOTIFY) and passes the resulting broadcasts to the event loops.
///
/// One thread with one connection. Postgres sends a notification only to sessions listening at that moment, and stores
/// none: after each time without a connection, the members of all channels that may have missed one are told that
/// messages may be missing. Every hub on a database listens for itself, and every loop gets all broadcasts, so only
/// those for channels with history are relayed: there, notifications have the same numbers on all hubs
/// (`NotificationOrder`).
///
/// **Overload**: see `NotificationBacklog`.
package final class NotificationListener: Sendable {
    private let setup: Setup
    private let stopSignal = StopSignal()
    private let published = Published(NotificationStatistics())
    private let thread = WorkerThread(named: "roost-listen")

    /// - Parameter report: called on the listener's thread: nil once the listener is listening, else the reason why it
    ///   is not, a sentence without a full stop.
    package init(
        conninfo: String, mappings: [NotificationMapping], sink: any FeedSink, logger: Logger,
        bounds: Bounds = Bounds(),
        report: @escaping @Sendable (_ problem: String?) -> Void = { _ in }
    ) {
        setup = Setup(
            conninfo: conninfo, mappings: mappings, sink: sink, logger: logger, bounds: bounds, report: report)
    }

    /// Starts the thread, which connects and keeps trying. Call once.
    package func start() {
        let (setup, stopSignal, published) = (setup, stopSignal, published)
        thread.start {
            var worker = ListenerWorker(setup, stopSignal, published)
            worker.runUntilStopped()
        }
    }

    /// Stops the thread. A thread that hangs is left behind after `patience`, as the process is about to end.
    package func stop(within patience: Duration = .seconds(1)) {
        stopSignal.stop(by: .now + patience)
        thread.join(by: .now + patience)
    }

    /// From any thread.
    package var statistics: NotificationStatistics { published.value }

    /// Times and sizes, which tests shorten.
    package struct Bounds: Sendable {
        /// The longest first wait after a failure; later waits double up to 15 times that.
        package var firstRetry: Duration = .seconds(1)
        /// The silence after which the session is checked.
        package var check: Duration = .seconds(5)
        /// The time limit of that check.
        package var patience: Duration = .seconds(4)
        /// The backlog in bytes at which a loop is handed nothing more.
        package var backlog = 8_000_000

        package init() {}
    }

    struct Setup: Sendable {
        let conninfo: String
        let mappings: [NotificationMapping]
        let sink: any FeedSink
        let logger: Logger
        let bounds: Bounds
        let report: @Sendable (String?) -> Void
    }
}

/// Counters of a listener for the metrics, since its creation.
package struct NotificationStatistics: Sendable, Equatable {
    package var isListening = false
    /// Broadcasts that were handed to event loops.
    package var sent = 0
    /// Notifications without a field that a mapping names.
    package var withoutField = 0
    /// Notifications with an invalid topic or event.
    package var impossible = 0
    /// Broadcasts that were not handed to a loop because it was too far behind.
    package var dropped = 0
    /// Times that members were told that messages may be missing, per loop.
    package var gaps = 0

    package init() {}
}
