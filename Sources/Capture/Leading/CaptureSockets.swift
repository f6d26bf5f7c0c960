import Glibc
import Postgres
import Workers

/// Waits for the sockets of a capture, and keeps the stream answered meanwhile: a walsender that hears nothing ends it.
final class CaptureSockets: SocketWaiter {
    private let stopSignal: StopSignal
    /// Called about once per `interval` during waits.
    var tick: () throws -> Void = {} { didSet { tickAt = .now + Self.interval } }
    private var tickAt = ContinuousClock.now
    private static let interval = Duration.seconds(2)

    init(_ stopSignal: StopSignal) { self.stopSignal = stopSignal }

    func wait(for descriptor: Int32, events: Int16, until deadline: ContinuousClock.Instant) throws {
        // Before the wait, too: the rows of a batch that are stored one by one cause many short waits.
        try tickIfDue(at: .now)
        while true {
            let end = min(deadline, stopSignal.deadline ?? deadline)
            // Once signaled, the descriptor stays readable.
            let stop = stopSignal.isStopping ? -1 : stopSignal.descriptor
            if Self.pollSockets([(descriptor, events), (stop, Int16(POLLIN))], until: min(end, tickAt)).first == true {
                return
            }
            let now = ContinuousClock.now
            if now >= end { throw PostgresError(.timeout, "Postgres did not answer in time.") }
            try tickIfDue(at: now)
        }
    }

    private func tickIfDue(at now: ContinuousClock.Instant) throws {
        guard now >= tickAt else { return }
        tickAt = now + Self.interval
        try tick()
    }

    /// Returns when data arrives at one of the descriptors, when the hub stops, or at `deadline`.
    func waitForInput(watching descriptors: [Int32], until deadline: ContinuousClock.Instant) {
        _ = Self.pollSockets(([stopSignal.descriptor] + descriptors).map { ($0, Int16(POLLIN)) }, until: deadline)
    }

    /// - Returns: for each socket whether it is ready; empty at the deadline. poll(2) ignores negative descriptors.
    private static func pollSockets(
        _ sockets: [(descriptor: Int32, events: Int16)], until deadline: ContinuousClock.Instant
    ) -> [Bool] {
        var polled = sockets.map { pollfd(fd: $0.descriptor, events: $0.events, revents: 0) }
        guard poll(&polled, nfds_t(polled.count), milliseconds(until: deadline)) > 0 else { return [] }
        return polled.map { $0.revents != 0 }
    }
}
