import CPostgres
import Glibc
import Postgres
import Synchronization

/// How others tell a thread to end, and the thread them that it has.
final class PresenceSignal: Sendable {
    private let endsAt = Mutex<ContinuousClock.Instant?>(nil)
    /// Readable once the thread is to end.
    let descriptor: Int32
    private let end: Int32

    init() {
        descriptor = eventfd(0, roost_eventfd_flags)
        end = eventfd(0, roost_eventfd_flags)
        precondition(descriptor >= 0 && end >= 0, "no file descriptor left for presence")
    }

    deinit {
        close(descriptor)
        close(end)
    }

    /// - Parameter patience: what the thread is given to finish its work.
    func stop(within patience: Duration) {
        endsAt.withLock { $0 = $0 ?? .now + patience }
        _ = eventfd_write(descriptor, 1)
    }

    /// When the thread is to have ended; nil as long as nobody wants it to.
    var deadline: ContinuousClock.Instant? { endsAt.withLock { $0 } }

    var isStopping: Bool { deadline != nil }

    func noteEnd() { _ = eventfd_write(end, 1) }

    func hasEnded(by deadline: ContinuousClock.Instant) -> Bool {
        var polled = [pollfd(fd: end, events: Int16(POLLIN), revents: 0)]
        while true {
            if poll(&polled, 1, milliseconds(until: deadline)) > 0 { return true }
            if ContinuousClock.now >= deadline { return false }
        }
    }
}
