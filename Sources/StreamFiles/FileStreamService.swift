package import Logging
package import Streams
import Synchronization
import Workers

/// Keeps streams in memory and in files, on a thread of its own.
///
/// What is appended is in the kernel's hands before it is answered or shown, so the hub may be killed at any moment; with `sync` it is on
/// the disk, too. Requests that come while others are written are written together.
///
/// **Overload**: a stream, and all of them, have limits in bytes; streams that ended go to make room, those that are open stay, and new ones are
/// refused. **Shutdown**: `stop` ends the thread behind what was asked before.
package final class FileStreamService: StreamService {
    package struct Setup: Sendable {
        package var directory: String
        package var limits = Limits()
        package var lease = StreamLease.Rules()
        package var sync = Sync.none
        package var logger: Logger

        package init(directory: String, logger: Logger) {
            self.directory = directory
            self.logger = logger
        }
    }

    package struct Limits: Sendable {
        /// Of a stream of text or JSON.
        package var bytes = 1_048_576
        package var binaryBytes = 16_777_216
        package var totalBytes = 268_435_456
        package var count = 10_000
        /// Milliseconds for which a stream can be read behind its end.
        package var keptAfterEnd: Int64 = 300_000

        package init() {}
    }

    /// When what was written has to be on the disk (`fdatasync`): never before it is answered, before an end is, or always.
    package enum Sync: String, Sendable, CaseIterable { case none, close, always }

    struct Mail {
        var requests: [Request] = []
        var isStopping = false
    }

    struct Request {
        let request: StreamRequest
        let name: StreamName
        let answer: @Sendable (StreamAnswer) -> Void
    }

    private let thread = WorkerThread(named: "roost-streams")
    private let mailbox = WorkerMailbox(Mail())
    private let index = StreamIndex()
    private let published = Published(StreamStatistics())
    /// Touched by `init`, and by the thread once it runs; the two never meet.
    nonisolated(unsafe) private let worker: StreamWorker

    /// Reads what is in the folder.
    package init(_ setup: Setup) throws(StreamFolder.Failure) {
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
    package var statistics: StreamStatistics { published.value }

    package func perform(
        _ request: StreamRequest, on name: StreamName, answer: @escaping @Sendable (StreamAnswer) -> Void
    ) {
        let isTaken = mailbox.post { mail in
            if !mail.isStopping { mail.requests.append(Request(request: request, name: name, answer: answer)) }
            return !mail.isStopping
        }
        if !isTaken { answer(.refused(.unavailable)) }
    }

    package func buffer(of name: StreamName) -> StreamBuffer? { index[name] }
    package func watch(_ stream: StreamBuffer, by loop: Int) { stream.addWatch(by: loop) }
    package func unwatch(_ stream: StreamBuffer, by loop: Int) { stream.removeWatch(by: loop) }
}

/// Streams by name, for readers. From any thread.
final class StreamIndex: Sendable {
    private let buffers = Mutex<[StreamName: StreamBuffer]>([:])

    subscript(name: StreamName) -> StreamBuffer? {
        get { buffers.withLock { $0[name] } }
        set { buffers.withLock { $0[name] = newValue } }
    }
}

/// What the metrics say of streams.
package struct StreamStatistics: Sendable {
    package var streams = 0
    package var open = 0
    package var bytes = 0
    package var appends = 0
    package var writes = 0
    package var refused = 0
    package var ended: [StreamEnding.Reason: Int] = [:]
    /// Writes that the disk did not take.
    package var failures = 0
}
