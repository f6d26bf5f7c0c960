package import Hub
package import Logging
import Postgres
import Workers

/// Listens to an application's own channels of Postgres (NOTIFY) and hands on to the loops what becomes of the notifications.
///
/// One thread and one connection of its own. A notification reaches those who listen at that moment, and nobody keeps it: after
/// each time without a connection, the members of all channels that could have got one are told that messages may be missing.
/// Every hub on a database listens for itself, and every loop is handed everything, so nothing is relayed but what channels with history
/// keep: for these notifications have the same numbers on all hubs (`NotificationOrder`).
///
/// **Overload**: see `NotificationBacklog`.
package final class NotificationListener: Sendable {
    private let setup: Setup
    private let stopSignal = StopSignal()
    private let published = Published(NotificationStatistics())
    private let thread = WorkerThread(named: "roost-listen")

    /// - Parameter report: called on the listener's thread: nil once the channels are listened to, else why they are not, a
    ///   sentence without a full stop.
    package init(
        conninfo: String, mappings: [NotificationMapping], sink: any FeedSink, logger: Logger,
        bounds: Bounds = Bounds(),
        report: @escaping @Sendable (_ problem: String?) -> Void = { _ in }
    ) {
        setup = Setup(
            conninfo: conninfo, mappings: mappings, sink: sink, logger: logger, bounds: bounds, report: report)
    }

    /// Starts the thread; it connects, and keeps trying. Once in the life of a listener.
    package func start() {
        let (setup, stopSignal, published) = (setup, stopSignal, published)
        thread.start {
            var worker = ListenerWorker(setup, stopSignal, published)
            worker.run()
        }
    }

    /// Ends the thread. One that hangs is left behind after `patience`: whoever stops a listener is about to end the process.
    package func stop(within patience: Duration = .seconds(1)) {
        stopSignal.stop(by: .now + patience)
        thread.join(by: .now + patience)
    }

    /// From any thread.
    package var statistics: NotificationStatistics { published.value }

    /// Times and sizes, which tests shorten.
    package struct Bounds: Sendable {
        /// The longest first wait after a failure; doubled up to 15 times that.
        package var firstRetry: Duration = .seconds(1)
        /// A session that said nothing for so long is asked whether it lives.
        package var check: Duration = .seconds(5)
        /// How long it may take to answer.
        package var patience: Duration = .seconds(4)
        /// Bytes that one loop may have to take before it is handed nothing more.
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

/// What a listener does, for the metrics: counters since it was made.
package struct NotificationStatistics: Sendable, Equatable {
    package var isListening = false
    /// Broadcasts that loops were handed.
    package var sent = 0
    /// Notifications that lacked a field that a mapping names.
    package var withoutField = 0
    /// Notifications whose topic or event cannot be.
    package var impossible = 0
    /// Broadcasts that a loop was not handed, as it was too far behind.
    package var dropped = 0
    /// Times that members were told that messages may be missing, for one loop or all.
    package var gaps = 0

    package init() {}
}
