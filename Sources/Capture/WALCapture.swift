package import Logging
import Postgres
import Workers

/// Reads the changes of tables that have no triggers from Postgres' WAL, and writes them into the outbox
/// (Migration014Capture.sql), from where every hub's feed reads them.
///
/// One thread and two connections: one streams the logical slot (pgoutput), the other stores. Of several hubs on a database
/// one does that, the leader; where it dies, freezes or is cut off, another takes over.
package final class WALCapture: Sendable {
    private let setup: Setup
    private let stopSignal = StopSignal()
    private let published = Published(CaptureReport())
    private let thread = WorkerThread(named: "roost-capture")

    /// - Parameters:
    ///   - patience: how long a batch may be refused for a reason that may pass, before its rows are taken apart.
    ///   - report: called on the capture's thread: nil while all is well, else why changes are not read, a sentence without a
    ///     full stop.
    package init(
        conninfo: String, logger: Logger, firstRetry: Duration = .seconds(1), silence: Duration = .seconds(6),
        interval: Duration = .seconds(1), patience: Duration = .seconds(20),
        report: @escaping @Sendable (_ problem: String?) -> Void = { _ in }
    ) {
        setup = Setup(
            conninfo: conninfo, logger: logger, firstRetry: firstRetry, silence: silence, interval: interval,
            patience: patience, report: report)
    }

    /// Starts the thread; it connects, and keeps trying. Once in the life of a capture.
    package func start() {
        let (setup, stopSignal, published) = (setup, stopSignal, published)
        thread.start {
            var worker = CaptureWorker(setup, stopSignal, published)
            worker.run()
        }
    }

    /// Ends the thread. What it has read and not stored is read again by the next leader. One that hangs is left behind
    /// after `patience`: whoever stops a capture is about to end the process.
    package func stop(within patience: Duration = .seconds(1)) {
        stopSignal.stop(by: .now + patience)
        thread.join(by: .now + patience)
    }

    /// From any thread.
    package var current: CaptureReport { published.value }

    struct Setup: Sendable {
        let conninfo: String
        let logger: Logger
        let firstRetry: Duration
        /// How long a leader may say nothing before another hub takes over.
        let silence: Duration
        /// How often a hub that does not lead looks whether it may.
        let interval: Duration
        /// With a batch that is refused for a reason that may pass.
        let patience: Duration
        let report: @Sendable (String?) -> Void
    }
}

/// What a capture does; the counters are those since it was made.
package struct CaptureReport: Sendable, Equatable {
    package enum State: String, Sendable, CaseIterable {
        /// There is no connection.
        case away
        /// No table is read from the WAL.
        case idle
        /// Another hub reads.
        case following
        /// The slot is being made or found.
        case preparing
        /// This hub reads.
        case leading
    }

    package var state = State.away
    /// Tables that are read from the WAL; nil while nobody knows.
    package var publishedTables: Int?
    package var rows = 0
    /// Of them those that have values as texts, as they could not be written as JSON.
    package var rowsAsTexts = 0
    /// Changes that could not be stored at all, and were passed.
    package var rowsLost = 0
    package var transactions = 0
    package var batches = 0
    /// WAL that Postgres keeps for the slot; nil where there is none, or while another hub leads.
    package var keptBytes: Int64?
    /// WAL that was not read yet, or is not stored.
    package var lagBytes: Int64?

    /// Since when something that was read has waited to be stored, also over sessions that ended; nil while nothing does.
    package var waitingSince: ContinuousClock.Instant?

    /// How long something has waited.
    package var waiting: Duration? { waitingSince.map { .now - $0 } }

    package init() {}
}
