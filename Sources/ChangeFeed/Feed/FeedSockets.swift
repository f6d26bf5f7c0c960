import Glibc
import Postgres
import Workers

/// Waits for a session's socket, and meanwhile serves the inbox and the doorbell's session.
final class FeedSockets: SocketWaiter {
    private let inbox: FeedInbox
    weak var bell: DoorbellSession?
    /// Further sockets that end a wait.
    var others: [Int32] = []
    var onWake: () -> Void = {}
    var servesInbox = true
    /// When a stopping feed gives up on an unanswered statement.
    private var patience: ContinuousClock.Instant?

    init(inbox: FeedInbox) { self.inbox = inbox }

    func wait(for descriptor: Int32, events: Int16, until deadline: ContinuousClock.Instant) throws {
        while true {
            if inbox.isStopping, patience == nil { patience = .now + .seconds(2) }
            let end = min(deadline, patience ?? deadline)
            if pollSockets(at: descriptor, events: events, until: end) { return }
            try bell?.collectAnswers(beside: descriptor)
            if ContinuousClock.now >= end { throw PostgresError(.timeout, "Postgres did not answer in time.") }
        }
    }

    /// Returns when anything at all happens, or at `deadline`.
    func waitForAnything(watching descriptor: Int32, until deadline: ContinuousClock.Instant) {
        _ = pollSockets(at: descriptor, events: Int16(POLLIN), until: deadline, beside: others)
    }

    /// Calls poll(2) once.
    ///
    /// - Returns: true if the socket is ready.
    private func pollSockets(
        at descriptor: Int32, events: Int16, until deadline: ContinuousClock.Instant, beside others: [Int32] = []
    ) -> Bool {
        var polled = [pollfd(fd: descriptor, events: events, revents: 0)]
        let bellDescriptor = bell?.descriptor ?? -1
        // poll(2) skips negative descriptors.
        polled.append(pollfd(fd: bellDescriptor == descriptor ? -1 : bellDescriptor, events: Int16(POLLIN), revents: 0))
        polled.append(pollfd(fd: servesInbox ? inbox.descriptor : -1, events: Int16(POLLIN), revents: 0))
        polled += others.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        guard poll(&polled, nfds_t(polled.count), milliseconds(until: deadline)) > 0 else { return false }
        if polled[2].revents != 0 { onWake() }
        return polled[0].revents != 0
    }
}
