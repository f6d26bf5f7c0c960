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
    /// Used only by the client's thread while it runs; created before the thread and destroyed after it.
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

    /// Asks the client to stop within this time, without waiting for it.
    package func requestStop(within limit: Duration) {
        mailbox.stop(by: PushClock.now().monotonic + limit.milliseconds)
    }

    /// Waits for the answers to requests that have left, for this long at most, and reports the rest as `.stopped` or `.unanswered`.
    package func stop(within limit: Duration) {
        requestStop(within: limit)
        if thread.wasStarted {
            thread.join()
        } else {
            report(stopped: mailbox.end())
        }
    }

    /// Takes notifications to send. From any thread; never waits. Each gets exactly one outcome, including those for which the queue
    /// has no room. After `stop` the outcome is `.stopped`, and `whenDone` is called on the caller's thread.
    package func send(_ pushes: [Push]) {
        if !pushes.isEmpty, !mailbox.post(pushes) { report(stopped: pushes) }
    }

    /// The number of notifications that the queue still has room for.
    package var room: Int { max(0, queue - mailbox.held) }

    /// The client's counters; at most 30 s old.
    package var statistics: PushStatistics { mailbox.statistics }

    private func report(stopped pushes: [Push]) {
        if !pushes.isEmpty { whenDone(pushes.map { ($0, .stopped) }) }
    }

    /// Carries the pointer to the thread that uses it. Other threads may meanwhile only wake that thread, which any thread may do.
    private struct Handle: @unchecked Sendable {
        let pointer: OpaquePointer
        init(_ pointer: OpaquePointer) { self.pointer = pointer }
    }
}
