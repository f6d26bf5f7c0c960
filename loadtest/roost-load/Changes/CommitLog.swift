import Synchronization

/// What the writers have done, shared with the thread that receives.
final class CommitLog: Sendable {
    enum Outcome {
        case pending, failed
        case committed(at: UInt64)
    }

    private struct State {
        /// The moment a commit returned; 0 while it has not, `failed` when it was refused.
        var moments: [UInt64]
        var start: UInt64?
        var connected = 0
        var finished = 0
        var failure: LoadFailure?
        var failures = 0
    }
    private static let failed = UInt64.max
    private let state: Mutex<State>

    init(ticks: Int) {
        state = Mutex(State(moments: [UInt64](repeating: 0, count: ticks)))
    }

    // MARK: The writers' side

    func connected() { state.withLock { $0.connected += 1 } }
    func finished() { state.withLock { $0.finished += 1 } }

    func committed(_ tick: Int, at moment: UInt64) { state.withLock { $0.moments[tick] = moment } }

    func failed(_ tick: Int, _ failure: LoadFailure) {
        state.withLock {
            $0.moments[tick] = Self.failed
            $0.failures += 1
            $0.failure = $0.failure ?? failure
        }
    }

    /// A writer that cannot go on.
    func broken(_ failure: LoadFailure) { state.withLock { $0.failure = $0.failure ?? failure } }

    /// When the schedule begins; nil while it is not set.
    var start: UInt64? { state.withLock { $0.start } }

    // MARK: The receiver's side

    func begin(at moment: UInt64) { state.withLock { $0.start = moment } }
    var connectedCount: Int { state.withLock { $0.connected } }
    var finishedCount: Int { state.withLock { $0.finished } }
    var failure: LoadFailure? { state.withLock { $0.failure } }
    var failureCount: Int { state.withLock { $0.failures } }

    /// Looks several ticks up under one lock.
    func outcomes(of ticks: some Sequence<Int>, _ body: (Outcome) -> Void) {
        state.withLock { state in
            for tick in ticks {
                switch state.moments[tick] {
                case 0: body(.pending)
                case Self.failed: body(.failed)
                case let moment: body(.committed(at: moment))
                }
            }
        }
    }
}
