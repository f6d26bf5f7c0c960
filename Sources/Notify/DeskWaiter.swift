import ChangeFeed
import Glibc

/// Waits for Postgres, and no longer than the desk may live.
final class DeskWaiter: SocketWaiter {
    private let mailbox: DeskMailbox

    init(_ mailbox: DeskMailbox) { self.mailbox = mailbox }

    func wait(for descriptor: Int32, events: Int16, until deadline: ContinuousClock.Instant) throws {
        while true {
            let end = min(deadline, mailbox.deadline ?? deadline)
            // In slices, so that a stop is noticed; the mailbox itself rings for other things, too.
            let slice = min(end, .now + .milliseconds(200))
            var polled = [pollfd(fd: descriptor, events: events, revents: 0)]
            let left = max(.zero, slice - .now)
            _ = poll(&polled, 1, Int32(left / .milliseconds(1)) + 1)
            if polled[0].revents != 0 { return }
            if ContinuousClock.now >= end { throw PostgresError(.timeout, "Postgres did not answer in time.") }
        }
    }
}
