import CCurl
import Glibc
package import Logging
import Synchronization

/// Sends notifications to APNs, from a thread of its own.
package final class PushClient: Sendable {
    private let configuration: APNsConfiguration
    private let logger: Logger
    private let whenDone: @Sendable ([(Push, PushOutcome)]) -> Void
    private let mailbox: PushClientMailbox
    private let thread = Mutex<PushThread?>(nil)
    /// Used by the client's thread alone, while it runs; made before it and destroyed after it.
    private nonisolated(unsafe) let set: OpaquePointer

    /// - Parameter whenDone: called on the client's thread, for many at once; must not wait, and not stop the client.
    package init(
        _ configuration: APNsConfiguration, logger: Logger,
        whenDone: @escaping @Sendable ([(Push, PushOutcome)]) -> Void
    ) {
        guard let set = roost_apns_create() else { fatalError("libcurl cannot start: there is no memory") }
        self.configuration = configuration
        self.logger = logger
        self.whenDone = whenDone
        self.set = set
        mailbox = PushClientMailbox(waking: set)
    }

    deinit {
        stop(within: .zero)
        roost_apns_destroy(set)
    }

    /// Starts the thread. Does nothing the second time, or after `stop`.
    package func start() {
        thread.withLock { thread in
            guard thread == nil else { return }
            thread = PushThread { [configuration, set = Handle(set), mailbox, logger, whenDone] in
                var loop = PushClientWorker(configuration, set.pointer, mailbox, logger, whenDone)
                loop.run()
            }
        }
    }

    /// Waits for the answers of what has left, at most that long, and reports the rest as `.stopped`, or `.unanswered`.
    package func stop(within limit: Duration) {
        mailbox.stop(by: PushClock.now().monotonic + limit.milliseconds)
        if let thread = thread.withLock({ $0 }) {
            thread.joinOnce()
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
    package var room: Int { max(0, configuration.queue - mailbox.held) }

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

/// A thread of the client's own: what waits in libcurl has no business on Swift's shared pool.
final class PushThread: Sendable {
    private final class Start: Sendable {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }

    private let handle: pthread_t
    private let isJoined = Mutex(false)

    init(_ body: @escaping @Sendable () -> Void) {
        var handle = pthread_t()
        let start = Unmanaged.passRetained(Start(body))
        let status = pthread_create(
            &handle, nil,
            { argument in
                guard let argument else { return nil }
                let start = Unmanaged<Start>.fromOpaque(argument).takeRetainedValue()
                roost_apns_begin_thread()
                start.body()
                return nil
            }, start.toOpaque())
        precondition(status == 0, "no thread left for APNs")
        self.handle = handle
    }

    /// Waits until the thread has ended. From any thread, and as often as one likes.
    func joinOnce() {
        isJoined.withLock { isJoined in
            if !isJoined { pthread_join(handle, nil) }
            isJoined = true
        }
    }
}
