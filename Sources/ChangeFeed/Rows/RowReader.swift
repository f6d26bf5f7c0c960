import Dispatch
import Hub
import Logging
import Postgres
import Synchronization
import Workers

/// Reads rows that clients start from, on its own threads and sessions: nothing else waits for them. From any thread.
final class RowReader: Sendable {
    private struct State {
        var queue: RowQueue<RowReading>
        var isStopping = false
    }

    private let conninfo: String
    private let limits: RowLimits
    private let logger: Logger
    private let state: Mutex<State>
    /// Signaled whenever a thread might find work.
    private let work = DispatchSemaphore(value: 0)
    private let threads: [WorkerThread]

    init(conninfo: String, limits: RowLimits = RowLimits(), logger: Logger) {
        self.conninfo = conninfo
        self.limits = limits
        self.logger = logger
        state = Mutex(State(queue: RowQueue(limits)))
        threads = (0..<limits.sessions).map { _ in WorkerThread(named: "roost-rows") }
    }

    /// Requests a read of rows, which happens as soon as it is this user's turn.
    func requestRows(_ reading: RowReading) {
        let isAdded = state.withLock { state in !state.isStopping && state.queue.addReading(reading, of: reading.user) }
        guard isAdded else { return reading.done(.tooMany, 0) }
        // Started by the first read, because most hubs have none.
        for thread in threads where !thread.wasStarted { thread.start { [self] in runUntilStopped() } }
        work.signal()
    }

    /// The rows of a read have been taken by their sockets.
    func releaseBytes(_ bytes: Int, of claims: Claims) {
        let user = RowUser(role: claims.role, subject: claims.subject)
        state.withLock { $0.queue.releaseBytes(user, bytes) }
        // Each of the threads may have waited for room.
        for _ in threads { work.signal() }
    }

    /// Ends the threads; waiting reads are answered.
    func stop(within patience: Duration = .seconds(3)) {
        let left = state.withLock { state in
            state.isStopping = true
            return state.queue.removeAll()
        }
        for reading in left { reading.done(.unavailable, 0) }
        for _ in threads { work.signal() }
        let deadline = ContinuousClock.now + patience
        for thread in threads where thread.wasStarted { thread.join(by: deadline) }
    }

    private func runUntilStopped() {
        var session = RowSession(conninfo: conninfo, limits: limits, logger: logger)
        while true {
            work.wait()
            let (reading, isStopping) = state.withLock { state in
                (state.isStopping ? nil : state.queue.takeNext(), state.isStopping)
            }
            if isStopping { return }
            guard let reading else { continue }
            let (outcome, bytes) = session.outcome(of: reading)
            state.withLock { $0.queue.finishReading(reading.user, holding: bytes) }
            reading.done(outcome, bytes)
            // The user's next read may be due, and others that waited for room.
            work.signal()
        }
    }
}
