import Glibc
package import Workers

/// Waits until a socket is ready; a feed serves its other sockets and its inbox meanwhile.
package protocol SocketWaiter: AnyObject {
    /// - Throws: `PostgresError` of kind `timeout` when `deadline` passes first.
    func wait(for descriptor: Int32, events: Int16, until deadline: ContinuousClock.Instant) throws
}

/// Waits for the one socket and nothing else, and no longer than its thread may live.
package final class PlainWaiter: SocketWaiter {
    private let stop: StopSignal?

    /// - Parameter stop: where it is given, its deadline is that of every wait that goes on when it comes.
    package init(until stop: StopSignal? = nil) { self.stop = stop }

    package func wait(for descriptor: Int32, events: Int16, until deadline: ContinuousClock.Instant) throws {
        while true {
            let last = stop?.deadline
            let end = min(deadline, last ?? deadline)
            var polled = [pollfd(fd: descriptor, events: events, revents: 0)]
            // Once it was signaled it stays readable.
            if let stop, last == nil { polled.append(pollfd(fd: stop.descriptor, events: Int16(POLLIN), revents: 0)) }
            _ = poll(&polled, nfds_t(polled.count), milliseconds(until: end))
            if polled[0].revents != 0 { return }
            if ContinuousClock.now >= end { throw PostgresError(.timeout, "Postgres did not answer in time.") }
        }
    }
}
