import CLinux
import Glibc
import Synchronization

/// A dedicated thread: code that waits in libpq or libcurl, or for a consumer that may block, does not belong on Swift's shared pool.
///
/// It is started once and ended once. Thread-safe.
package final class WorkerThread: Sendable {
    private final class Start: Sendable {
        let name: String
        let ended: EventDescriptor
        let body: @Sendable () -> Void

        init(_ name: String, _ ended: EventDescriptor, _ body: @escaping @Sendable () -> Void) {
            self.name = name
            self.ended = ended
            self.body = body
        }
    }

    private enum State {
        case new
        case running(pthread_t)
        case joined
    }

    private let name: String
    private let state = Mutex(State.new)
    private let ended = EventDescriptor()

    /// - Parameter name: up to 15 bytes, as Linux shows it.
    package init(named name: String) { self.name = name }

    /// Runs `body` on the thread, unless it was started before.
    package func start(_ body: @escaping @Sendable () -> Void) {
        state.withLock { state in
            guard case .new = state else { return }
            var handle = pthread_t()
            let start = Unmanaged.passRetained(Start(name, ended, body))
            let status = pthread_create(
                &handle, nil,
                { argument in
                    guard let argument else { return nil }
                    let start = Unmanaged<Start>.fromOpaque(argument).takeRetainedValue()
                    roost_name_thread(start.name)
                    start.body()
                    start.ended.signal()
                    return nil
                }, start.toOpaque())
            precondition(status == 0, "no thread left for \(name)")
            state = .running(handle)
        }
    }

    package var wasStarted: Bool { if case .new = state.withLock({ $0 }) { false } else { true } }

    /// Waits until `body` has returned; may be called repeatedly. A thread that was never started counts as ended.
    ///
    /// - Parameter deadline: a thread that hangs, in the network or in the look-up of a host's name, is left behind
    ///   then. The caller is about to end the process.
    /// - Returns: whether the thread has ended.
    @discardableResult
    package func join(by deadline: ContinuousClock.Instant? = nil) -> Bool {
        guard wasStarted else { return true }
        guard ended.wait(until: deadline) else { return false }
        state.withLock { state in
            if case .running(let handle) = state { pthread_join(handle, nil) }
            state = .joined
        }
        return true
    }
}

/// Asks the kernel to run the calling thread as soon as it wakes, before threads with longer time slices, and for no
/// more time in total (Linux 6.12 and later; others keep their own order).
package func preferShortSlices() { _ = roost_set_slice(100_000) }
