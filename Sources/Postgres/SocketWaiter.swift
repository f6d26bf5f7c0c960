import Glibc

/// Waits until a socket is ready; a feed serves its other sockets and its inbox meanwhile.
package protocol SocketWaiter: AnyObject {
    /// - Throws: `PostgresError` of kind `timeout` when `deadline` passes first.
    func wait(for descriptor: Int32, events: Int16, until deadline: ContinuousClock.Instant) throws
}

/// Waits for the one socket and nothing else: for the command line.
package final class PlainWaiter: SocketWaiter {
    package init() {}

    package func wait(for descriptor: Int32, events: Int16, until deadline: ContinuousClock.Instant) throws {
        var polled = [pollfd(fd: descriptor, events: events, revents: 0)]
        while poll(&polled, 1, milliseconds(until: deadline)) <= 0 {
            if ContinuousClock.now >= deadline { throw PostgresError(.timeout, "Postgres did not answer in time.") }
        }
    }
}

/// What poll(2) takes: whole milliseconds, rounded up so that a wait never ends just before its deadline.
package func milliseconds(until deadline: ContinuousClock.Instant) -> Int32 {
    let left = deadline - .now
    guard left > .zero else { return 0 }
    let (seconds, attoseconds) = left.components
    return Int32(clamping: min(seconds, 100_000) * 1000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
}

extension Duration {
    /// Whole milliseconds, rounded down.
    package var milliseconds: Int64 { components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000 }
}
