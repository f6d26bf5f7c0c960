package import Logging
package import Streams
import Synchronization
import Workers

/// Keeps streams in memory and in files, on a thread of its own.
///
/// What is appended is in the kernel's hands before it is answered or shown, so the hub may be killed at any moment; with `sync` it is on
/// the disk, too. Requests that come while others are written are written together.
///
/// Of several hubs (`Setup.shared`) each has all streams: what is answered stands in their logs in Redis, and in a file here, which is a
/// copy. Hubs are equal, and none owns a stream: each decides by what it knows, and Redis takes that if the hub knew the whole log.
///
/// **Overload**: a stream, those of one owner, and all of them have limits; streams that ended go to make room, those of whoever has most
/// before others; those that are open stay, and new ones are refused. **Shutdown**: `stop` ends the thread behind what was asked before.
package final class FileStreamService: StreamService {
    package struct Setup: Sendable {
        package var directory: String
        package var limits = Limits()
        package var lease = StreamLease.Rules()
        package var sync = Sync.none
        /// Commits rows with ends, and settles what was left behind.
        package var committer: (any StreamCommitter)?
        /// Which ends are committed with a row (`streams.on_close`).
        package var closeRules: [CloseRule] = []
        /// Of several hubs; nil where the hub is alone.
        package var shared: SharedStreams?
        package var logger: Logger

        package init(directory: String, logger: Logger) {
            self.directory = directory
            self.logger = logger
        }
    }

    package struct Limits: Sendable {
        /// Of a stream of text or JSON that no entry of `bounds` is for.
        package var bytes = 4_194_304
        package var binaryBytes = 16_777_216
        /// The first that is for a stream counts.
        package var bounds: [BoundRule] = []
        package var totalBytes = 268_435_456
        package var count = 10_000
        /// Of one owner, all together.
        package var bytesPerUser = 67_108_864
        package var countPerUser = 500
        /// Milliseconds for which a stream can be read behind its end.
        package var keptAfterEnd: Int64 = 300_000
        /// Milliseconds for which an end may wait for its row.
        package var closedWithin: Int64 = 3_600_000

        package init() {}
    }

    /// When what was written has to be on the disk (`fdatasync`): never before it is answered, before an end is, or always.
    package enum Sync: String, Sendable, CaseIterable { case none, close, always }

    struct Mail {
        var requests: [Request] = []
        /// Of their bodies.
        var bytes = 0
        var outcomes: [(key: StreamCommitKey, name: StreamName, outcome: StreamCommitOutcome)] = []
        /// An operator's, answered behind the requests before them.
        var questions: [@Sendable (StreamWorker) -> Void] = []
        var isStopping = false
    }

    struct Request {
        let request: StreamRequest
        let name: StreamName
        let answer: @Sendable (StreamAnswer) -> Void
    }

    /// Bytes of requests that wait for those before them.
    private static let mostWaiting = 67_108_864

    private let thread = WorkerThread(named: "roost-streams")
    private let mailbox = WorkerMailbox(Mail())
    private let index = StreamIndex()
    private let published = Published(StreamStatistics())
    private let isOfSeveralHubs: Bool
    /// Requests that were refused without being looked at, as too much waits.
    private let turnedAway = Atomic<Int>(0)
    /// Touched by `init`, and by the thread once it runs; the two never meet.
    nonisolated(unsafe) private let worker: StreamWorker

    /// Reads what is in the folder.
    package init(_ setup: Setup) throws(StreamFolder.Failure) {
        isOfSeveralHubs = setup.shared != nil
        worker = try StreamWorker(setup, index, published)
    }

    /// Starts the thread. Once in the life of a service.
    package func start(telling sink: any StreamSink) {
        thread.start { [self] in worker.run(mailbox, sink) }
    }

    package func stop() {
        mailbox.post { $0.isStopping = true }
        thread.join(by: .now + .seconds(5))
    }

    /// From any thread.
    package var statistics: StreamStatistics {
        var statistics = published.value
        statistics.refused[.unavailable, default: 0] += turnedAway.load(ordering: .relaxed)
        return statistics
    }

    package func perform(
        _ request: StreamRequest, on name: StreamName, answer: @escaping @Sendable (StreamAnswer) -> Void
    ) {
        let isTaken = mailbox.post { mail in
            // A disk that is slower than what comes must not fill the memory.
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

    /// Waits for what was asked before: it is written, answered, and the loops are told.
    ///
    /// - Parameter done: is told on the service's thread; false while rows of ends are being committed.
    package func awaitCommits(_ done: @escaping @Sendable (Bool) -> Void) {
        mailbox.post { $0.questions.append { done(!$0.hasWaitingCloses) } }
    }

    package var isShared: Bool { isOfSeveralHubs }

    package func buffer(of name: StreamName) -> StreamBuffer? { index[name] }
    @discardableResult package func watch(_ name: StreamName, by loop: Int) -> StreamBuffer? {
        index.watch(name, by: loop)
    }
    package func unwatch(_ name: StreamName, by loop: Int) { index.unwatch(name, by: loop) }
}

extension FileStreamService.Request {
    /// Of its body.
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

/// Streams by name, for readers, and who watches which name. From any thread.
final class StreamIndex: Sendable {
    private struct State {
        var buffers: [StreamName: StreamBuffer] = [:]
        /// How often each loop watches a name.
        var watching: [StreamName: [Int: Int]] = [:]
    }

    private let state = Mutex(State())

    subscript(name: StreamName) -> StreamBuffer? { state.withLock { $0.buffers[name] } }

    /// - Returns: the loops that wait for a stream of this name.
    func add(_ buffer: StreamBuffer) -> [Int] {
        state.withLock { state in
            state.buffers[buffer.name] = buffer
            let loops = state.watching[buffer.name]?.keys.sorted() ?? []
            for loop in loops { buffer.addWatch(by: loop) }
            return loops
        }
    }

    /// Another generation of the name stays.
    func remove(_ buffer: StreamBuffer) {
        state.withLock { if $0.buffers[buffer.name] === buffer { $0.buffers[buffer.name] = nil } }
    }

    func watch(_ name: StreamName, by loop: Int) -> StreamBuffer? {
        state.withLock { state in
            state.watching[name, default: [:]][loop, default: 0] += 1
            let buffer = state.buffers[name]
            buffer?.addWatch(by: loop)
            return buffer
        }
    }

    func unwatch(_ name: StreamName, by loop: Int) {
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
    package func survey(limit: Int, then reply: @escaping @Sendable (StreamSurvey) -> Void) {
        mailbox.post { $0.questions.append { reply($0.survey(limit: limit)) } }
    }

    package func inspect(_ name: StreamName, limit: Int, then reply: @escaping @Sendable (StreamReport?) -> Void) {
        mailbox.post { $0.questions.append { reply($0.report(on: name, limit: limit)) } }
    }
}

/// What the metrics say of streams.
package struct StreamStatistics: Sendable {
    package var streams = 0
    package var open = 0
    /// Of those that are open.
    package var stalled = 0
    /// Connections by which producers append.
    package var connectedProducers = 0
    package var bytes = 0
    package var appends = 0
    package var appendedBytes = 0
    package var writes = 0
    package var refused: [StreamRefusal.Reason: Int] = [:]
    /// Streams that had ended and went before their time, for others.
    package var evicted = 0
    package var ended: [StreamEnding.Reason: Int] = [:]
    /// Streams that ended without the row that they were to be written as.
    package var unclosed = 0
    /// Writes that the disk did not take.
    package var failures = 0
    /// Of what hubs share; nil where the hub is alone.
    package var shared: Shared?

    package struct Shared: Sendable {
        /// Whether it may be written now.
        package var isOpen = false
        /// Requests that were decided anew, as another hub was faster.
        package var conflicts = 0
        /// Streams that were written back as Redis had lost them, or their ends.
        package var returned = 0
        /// Streams that went, as two hubs had written them while neither knew of the other.
        package var forked = 0
        /// Streams, and messages about them, that somebody damaged in Redis.
        package var damaged = 0
    }
}
