package import Logging
import Postgres
import Workers

/// Reads the changes of tables that have no triggers from Postgres' WAL, and writes them into the outbox
/// (SchemaCapture.sql), which every hub's feed reads.
///
/// One thread and two connections: one streams the logical slot (pgoutput), the other stores. Among the hubs on a
/// database only the leader does so; if it dies, freezes or is cut off, another hub takes over.
package final class WALCapture: Sendable {
    private let setup: Setup
    private let stopSignal = StopSignal()
    private let published = Published(CaptureReport())
    private let thread = WorkerThread(named: "roost-capture")

    /// - Parameters:
    ///   - patience: the duration of transient refusals after which a batch's rows are stored apart.
    ///   - report: called on the capture's thread: nil while changes are read, else the reason why they are not, a
    ///   sentence without a full stop.
    package init(
        conninfo: String, logger: Logger, firstRetry: Duration = .seconds(1), silence: Duration = .seconds(6),
        interval: Duration = .seconds(1), patience: Duration = .seconds(20),
        report: @escaping @Sendable (_ problem: String?) -> Void = { _ in }
    ) {
        setup = Setup(
            conninfo: conninfo, logger: logger, firstRetry: firstRetry, silence: silence, interval: interval,
            patience: patience, report: report)
    }

    /// Starts the thread, which connects and keeps trying. Call once.
    package func start() {
        let (setup, stopSignal, published) = (setup, stopSignal, published)
        thread.start {
            var worker = CaptureWorker(setup, stopSignal, published)
            worker.runUntilStopped()
        }
    }

    /// Stops the thread. Changes that it has read but not stored are read again by the next leader. A thread that hangs
    /// is left behind after `patience`, as the process is about to end.
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
        /// The silence of a leader after which another hub takes over.
        let silence: Duration
        /// The interval at which a hub that does not lead tries to.
        let interval: Duration
        /// The duration of transient refusals after which a batch's rows are stored apart.
        let patience: Duration
        let report: @Sendable (String?) -> Void
    }
}

/// The state of a capture; counters start with its creation.
package struct CaptureReport: Sendable, Equatable {
    package enum State: String, Sendable, CaseIterable {
        /// No connection.
        case away
        /// No table is read from the WAL.
        case idle
        /// Another hub reads the WAL.
        case following
        /// The slot is being found or created.
        case preparing
        /// This hub reads the WAL.
        case leading
    }

    package var state = State.away
    /// The number of tables that are read from the WAL; nil while unknown.
    package var publishedTables: Int?
    package var rows = 0
    /// Rows among them with texts for values that could not be written as JSON.
    package var rowsAsTexts = 0
    /// Changes that could not be stored and were skipped.
    package var rowsLost = 0
    package var transactions = 0
    package var batches = 0
    /// WAL that Postgres retains for the slot; nil if there is no slot, or while another hub leads.
    package var keptBytes: Int64?
    /// WAL that is not read yet, or not stored.
    package var lagBytes: Int64?

    /// Start of the wait of changes that were read but not stored, across sessions; nil while none wait.
    package var waitingSince: ContinuousClock.Instant?

    /// Duration of that wait.
    package var waiting: Duration? { waitingSince.map { .now - $0 } }

    package init() {}
}
