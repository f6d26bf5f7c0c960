import Glibc
import Postgres

/// Waits for the one socket, and no longer than the thread may live.
final class PresenceWaiter: SocketWaiter {
    private let signal: PresenceSignal

    init(signal: PresenceSignal) { self.signal = signal }

    func wait(for descriptor: Int32, events: Int16, until deadline: ContinuousClock.Instant) throws {
        while true {
            let last = signal.deadline
            let end = min(deadline, last ?? deadline)
            // Once it has rung it stays readable; poll(2) leaves negative descriptors out.
            var polled = [
                pollfd(fd: descriptor, events: events, revents: 0),
                pollfd(fd: last == nil ? signal.descriptor : -1, events: Int16(POLLIN), revents: 0),
            ]
            _ = poll(&polled, nfds_t(polled.count), milliseconds(until: end))
            if polled[0].revents != 0 { return }
            if ContinuousClock.now >= end { throw PostgresError(.timeout, "Postgres did not answer in time.") }
        }
    }
}
