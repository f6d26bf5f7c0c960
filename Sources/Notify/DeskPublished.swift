import Dispatch
import Logging
import Synchronization

/// What other threads may know of the desk's.
final class DeskPublished: Sendable {
    private let state = Mutex((statistics: DeskStatistics(), lost: 0, saidAt: ContinuousClock.Instant?.none))
    private let end = DispatchSemaphore(value: 0)

    var statistics: DeskStatistics {
        state.withLock { state in
            var statistics = state.statistics
            statistics.lostMessages += state.lost
            return statistics
        }
    }

    func publish(_ statistics: DeskStatistics) { state.withLock { $0.statistics = statistics } }

    /// Said at most once a minute.
    func lost(_ count: Int, _ logger: Logger) {
        let isToBeSaid = state.withLock { state in
            state.lost += count
            if let saidAt = state.saidAt, saidAt + .seconds(60) > .now { return false }
            state.saidAt = .now
            return true
        }
        guard isToBeSaid else { return }
        logger.error(
            """
            \(count) new messages are not pushed, and more may follow: \(DeskMailbox.mostMessages) wait for Postgres \
            already; see why alerts.audience is slow.
            """)
    }

    func noteEnd() { end.signal() }

    func hasEnded(by deadline: ContinuousClock.Instant) -> Bool {
        let left = max(.zero, deadline - .now)
        return end.wait(timeout: .now() + .milliseconds(Int(left / .milliseconds(1)))) == .success
    }
}
