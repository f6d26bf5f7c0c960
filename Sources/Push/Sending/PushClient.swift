import CCurl
package import Logging
import Workers

/// Sends notifications to the service of one kind, from a thread of its own.
package final class PushClient: Sendable {
    private let dialect: any PushDialect
    private let queue: Int
    private let logger: Logger
    private let whenDone: @Sendable ([(Push, PushOutcome)]) -> Void
    private let mailbox: PushClientMailbox
    private let thread: WorkerThread
    /// Used by the client's thread alone, while it runs; made before it and destroyed after it.
    private nonisolated(unsafe) let set: OpaquePointer

    /// - Parameter whenDone: called on the client's thread, for many at once; must not wait, and not stop the client.
    package init(
        _ service: PushServiceConfiguration, logger: Logger,
        whenDone: @escaping @Sendable ([(Push, PushOutcome)]) -> Void
    ) {
        guard let set = roost_http2_create() else { fatalError("libcurl cannot start: there is no memory") }
        dialect = service.dialect
        queue = service.limits.queue
        thread = WorkerThread(named: "roost-\(service.kind.rawValue)")
        self.logger = logger
        self.whenDone = whenDone
        self.set = set
        mailbox = PushClientMailbox(waking: set)
    }

    deinit {
        stop(within: .zero)
        roost_http2_destroy(set)
    }

    /// Starts the thread. Does nothing the second time, or after `stop`.
    package func start() {
        thread.start { [dialect, set = Handle(set), mailbox, logger, whenDone] in
            roost_http2_begin_thread()
            var loop = PushClientWorker(dialect, set.pointer, mailbox, logger, whenDone)
            loop.run()
        }
    }

    /// Has the client stop within that time, and does not wait for it.
    package func requestStop(within limit: Duration) {
        mailbox.stop(by: PushClock.now().monotonic + limit.milliseconds)
    }

    /// Waits for the answers of what has left, at most that long, and reports the rest as `.stopped`, or `.unanswered`.
    package func stop(within limit: Duration) {
        requestStop(within: limit)
        if thread.wasStarted {
            thread.join()
        } else {
            report(stopped: mailbox.end())
        }
    }

    /// Takes notifications to send. From any thread; never waits. Each gets exactly one outcome, also those that the
    /// queue has no room for. After `stop` that is `.stopped`, and `whenDone` is called on the caller's thread.
    package func send(_ pushes: [Push]) {
        if !pushes.isEmpty, !mailbox.post(pushes) { report(stopped: pushes) }
    }

    /// How many more notifications the queue takes.
    package var room: Int { max(0, queue - mailbox.held) }

    /// What the client has done; at most 30 s old.
    package var statistics: PushStatistics { mailbox.statistics }

    private func report(stopped pushes: [Push]) {
        if !pushes.isEmpty { whenDone(pushes.map { ($0, .stopped) }) }
    }

    /// Carries the pointer to the thread that uses it. Nobody else uses it meanwhile but to wake the thread, which any
    /// thread may do.
    private struct Handle: @unchecked Sendable {
        let pointer: OpaquePointer
        init(_ pointer: OpaquePointer) { self.pointer = pointer }
    }
}
