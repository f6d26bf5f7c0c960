package import Logging
package import Streams
import Synchronization
import Workers

/// Keeps streams in memory and in files, on its own thread.
///
/// Appended bytes are in the kernel's hands before they are acknowledged or shown, so the hub may be killed at any
/// moment; with `sync`, they are on the disk, too. Requests that arrive during a write are written together.
///
/// With several hubs (`Setup.shared`), each has all streams: acknowledged data is in their logs in Redis, and in a file here, which is a
/// copy. Hubs are equal, and none owns a stream: each decides by what it knows, and Redis accepts the result if the hub knew the whole log.
///
/// **Overload**: each stream, the streams of each owner, and all streams together have limits. Ended streams are
/// removed to make room, those of the largest owner first; open ones stay, and new ones are refused. **Shutdown**:
/// `stop` ends the thread after all earlier requests.
package final class FileStreamService: StreamService {
    package struct Setup: Sendable {
        package var directory: String
        package var limits = Limits()
        package var lease = StreamLease.Rules()
        package var sync = Sync.none
        /// Commits rows with ends, and settles attempts left behind.
        package var committer: (any StreamCommitter)?
        /// The ends that are committed with a row (`streams.on_close`).
        package var closeRules: [CloseRule] = []
        /// The connection between several hubs; nil for a single hub.
        package var shared: SharedStreams?
        package var logger: Logger

        package init(directory: String, logger: Logger) {
            self.directory = directory
            self.logger = logger
        }
    }

    package struct Limits: Sendable {
        /// The limit of a text or JSON stream to which no entry of `bounds` applies.
        package var bytes = 4_194_304
        package var binaryBytes = 16_777_216
        /// The first entry that applies to a stream counts.
        package var bounds: [BoundRule] = []
        package var totalBytes = 268_435_456
        package var count = 10_000
        /// The limits of all streams of one owner together.
        package var bytesPerUser = 67_108_864
        package var countPerUser = 500
        /// Milliseconds for which a stream can be read after its end.
        package var keptAfterEnd: Int64 = 300_000
        /// Milliseconds for which an end may wait for its row.
        package var closedWithin: Int64 = 3_600_000

        package init() {}
    }

    /// When written bytes must be on the disk (`fdatasync`): not at all before the answer, before an end is
    /// acknowledged, or before any answer.
    package enum Sync: String, Sendable, CaseIterable { case none, close, always }

    struct Mail {
        var requests: [Request] = []
        /// The total size of their bodies.
        var bytes = 0
        var outcomes: [(key: StreamCommitKey, name: StreamName, outcome: StreamCommitOutcome)] = []
        /// An operator's questions, answered after the requests before them.
        var questions: [@Sendable (StreamWorker) -> Void] = []
        var isStopping = false
    }

    struct Request {
        let request: StreamRequest
        let name: StreamName
        let answer: @Sendable (StreamAnswer) -> Void
    }

    /// Bytes of requests that may wait for earlier ones.
    private static let mostWaiting = 67_108_864

    private let thread = WorkerThread(named: "roost-streams")
    private let mailbox = WorkerMailbox(Mail())
    private let index = StreamIndex()
    private let published = Published(StreamStatistics())
    private let isOfSeveralHubs: Bool
    /// Requests refused unexamined, because too many were waiting.
    private let turnedAway = Atomic<Int>(0)
    /// Used by `init`, then by the thread once it runs; never by both at once.
    nonisolated(unsafe) private let worker: StreamWorker

    /// Reads the folder.
    package init(_ setup: Setup) throws(StreamFolder.Failure) {
        isOfSeveralHubs = setup.shared != nil
        worker = try StreamWorker(setup, index, published)
    }

    /// Starts the thread. Call it once per service.
    package func start(telling sink: any StreamSink) {
        thread.start { [self] in worker.runUntilStopped(mailbox, sink) }
    }

    package func stop() {
        mailbox.post { $0.isStopping = true }
        thread.join(by: .now + .seconds(5))
    }

    /// Thread-safe.
    package var statistics: StreamStatistics {
        var statistics = published.value
        statistics.refused[.unavailable, default: 0] += turnedAway.load(ordering: .relaxed)
        return statistics
    }

    package func submitRequest(
        _ request: StreamRequest, on name: StreamName, answer: @escaping @Sendable (StreamAnswer) -> Void
    ) {
        let isTaken = mailbox.post { mail in
            // A disk slower than its input must not fill the memory.
            guard !mail.isStopping, mail.bytes == 0 || mail.bytes + request.bytes <= Self.mostWaiting else {
                return false
            }
            mail.bytes += request.bytes
            mail.requests.append(Request(request: request, name: name, answer: answer))
            return true
        }
        guard !isTaken else { return }
        turnedAway.add(1, ordering: .relaxed)
        answer(.refused(.unavailable))
    }

    /// Waits until all earlier requests are written and answered, and the loops are told.
    ///
    /// - Parameter done: called on the service's thread; false while rows of ends are being committed.
    package func awaitCommits(_ done: @escaping @Sendable (Bool) -> Void) {
        mailbox.post { $0.questions.append { done(!$0.hasWaitingCloses) } }
    }

    package var isShared: Bool { isOfSeveralHubs }

    package func buffer(of name: StreamName) -> StreamBuffer? { index[name] }
    @discardableResult package func watchStream(_ name: StreamName, by loop: Int) -> StreamBuffer? {
        index.watchStream(name, by: loop)
    }
    package func unwatchStream(_ name: StreamName, by loop: Int) { index.unwatchStream(name, by: loop) }
}

extension FileStreamService.Request {
    /// The size of its body.
    var bytes: Int { request.bytes }
}

extension StreamRequest {
    fileprivate var bytes: Int {
        switch self {
        case .create(_, let body, _, _): body.count
        case .append(let append): append.body.count
        case .cancel, .delete, .abort, .hold, .release, .touch: 0
        }
    }
}

/// Streams by name, for readers, and the loops that watch each name. Thread-safe.
final class StreamIndex: Sendable {
    private struct State {
        var buffers: [StreamName: StreamBuffer] = [:]
        /// The number of watches of each loop on a name.
        var watching: [StreamName: [Int: Int]] = [:]
    }

    private let state = Mutex(State())

    subscript(name: StreamName) -> StreamBuffer? { state.withLock { $0.buffers[name] } }

    /// - Returns: the loops that wait for a stream of this name.
    func addBuffer(_ buffer: StreamBuffer) -> [Int] {
        state.withLock { state in
            state.buffers[buffer.name] = buffer
            let loops = state.watching[buffer.name]?.keys.sorted() ?? []
            for loop in loops { buffer.addWatch(by: loop) }
            return loops
        }
    }

    /// Leaves another generation of the name in place.
    func removeBuffer(_ buffer: StreamBuffer) {
        state.withLock { if $0.buffers[buffer.name] === buffer { $0.buffers[buffer.name] = nil } }
    }

    func watchStream(_ name: StreamName, by loop: Int) -> StreamBuffer? {
        state.withLock { state in
            state.watching[name, default: [:]][loop, default: 0] += 1
            let buffer = state.buffers[name]
            buffer?.addWatch(by: loop)
            return buffer
        }
    }

    func unwatchStream(_ name: StreamName, by loop: Int) {
        state.withLock { state in
            guard let count = state.watching[name]?[loop] else { return }
            state.watching[name]?[loop] = count > 1 ? count - 1 : nil
            guard count == 1 else { return }
            if state.watching[name]?.isEmpty == true { state.watching[name] = nil }
            state.buffers[name]?.removeWatch(by: loop)
        }
    }
}

extension FileStreamService: StreamInspector {
    package func surveyStreams(limit: Int, then reply: @escaping @Sendable (StreamSurvey) -> Void) {
        mailbox.post { $0.questions.append { reply($0.makeSurvey(limit: limit)) } }
    }

    package func inspectStream(_ name: StreamName, limit: Int, then reply: @escaping @Sendable (StreamReport?) -> Void)
    {
        mailbox.post { $0.questions.append { reply($0.makeReport(on: name, limit: limit)) } }
    }
}

/// The metrics of streams.
package struct StreamStatistics: Sendable {
    package var streams = 0
    package var open = 0
    /// Open streams that are stalled.
    package var stalled = 0
    /// Connections through which producers append.
    package var connectedProducers = 0
    package var bytes = 0
    package var appends = 0
    package var appendedBytes = 0
    package var writes = 0
    package var refused: [StreamRefusal.Reason: Int] = [:]
    /// Ended streams removed early to make room.
    package var evicted = 0
    package var ended: [StreamEnding.Reason: Int] = [:]
    /// Streams that ended without the row that was to be written with the end.
    package var unclosed = 0
    /// Failed writes to the disk.
    package var failures = 0
    /// The streams shared between hubs; nil for a single hub.
    package var shared: Shared?

    package struct Shared: Sendable {
        /// Whether shared streams can be written now.
        package var isOpen = false
        /// Requests decided again because another hub was faster.
        package var conflicts = 0
        /// Streams written back because Redis had lost them or their ends.
        package var returned = 0
        /// Streams deleted because two hubs had written them without knowing of each other.
        package var forked = 0
        /// Streams, and messages about them, that another program damaged in Redis.
        package var damaged = 0
    }
}
