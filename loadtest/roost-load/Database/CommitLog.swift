import Synchronization

/// What the writers have done, shared with the thread that receives. It remembers the last rows, not all of them.
final class CommitLog: Sendable {
    enum Outcome {
        case pending, failed
        case committed(at: UInt64)
    }

    private struct State {
        /// The moment a commit returned, by tick; 0 while it has not, `failed` when it was refused.
        var moments: [UInt64]
        var start: UInt64?
        var isStopped = false
        var connected = 0
        var finished = 0
        /// The first tick that each writer has not begun.
        var begun: [Int]
        var committed = 0
        var lastCommit: UInt64 = 0
        var failure: LoadFailure?
        /// How many inserts failed, by conversation.
        var failures: [Int: Int] = [:]
    }
    private static let failed = UInt64.max
    /// Deliveries later than so many rows are of no interest any more.
    private static let longest = 1 << 18
    private let mask: Int
    private let state: Mutex<State>

    init(ticks: Int, writers: Int) {
        var size = 1
        while size < min(ticks, Self.longest) { size *= 2 }
        mask = size - 1
        state = Mutex(
            State(moments: [UInt64](repeating: 0, count: size), begun: [Int](repeating: 0, count: writers)))
    }

    // MARK: The writers' side

    func connected() { state.withLock { $0.connected += 1 } }
    func finished() { state.withLock { $0.finished += 1 } }

    /// - Returns: whether the writer should go on.
    func begins(_ tick: Int, writer: Int) -> Bool {
        state.withLock { state in
            guard !state.isStopped else { return false }
            state.moments[tick & mask] = 0
            state.begun[writer] = tick + 1
            return true
        }
    }

    func committed(_ tick: Int, at moment: UInt64) {
        state.withLock { state in
            state.moments[tick & mask] = moment
            state.committed += 1
            state.lastCommit = max(state.lastCommit, moment)
        }
    }

    func failed(_ tick: Int, in conversation: Int, _ failure: LoadFailure) {
        state.withLock { state in
            state.moments[tick & mask] = Self.failed
            state.failures[conversation, default: 0] += 1
            state.failure = state.failure ?? failure
        }
    }

    /// A writer that cannot go on.
    func broken(_ failure: LoadFailure) { state.withLock { $0.failure = $0.failure ?? failure } }

    /// When the schedule begins; nil while it is not set.
    var start: UInt64? { state.withLock { $0.start } }

    // MARK: The receiver's side

    func begin(at moment: UInt64) { state.withLock { $0.start = moment } }
    /// No writer begins another row.
    func stop() { state.withLock { $0.isStopped = true } }
    var isStopped: Bool { state.withLock { $0.isStopped } }
    var connectedCount: Int { state.withLock { $0.connected } }
    var finishedCount: Int { state.withLock { $0.finished } }
    var failure: LoadFailure? { state.withLock { $0.failure } }
    var failures: [Int: Int] { state.withLock { $0.failures } }
    var committedCount: Int { state.withLock { $0.committed } }
    var lastCommit: UInt64 { state.withLock { $0.lastCommit } }
    /// How many rows each writer has begun, by its index.
    var begun: [Int] { state.withLock { $0.begun } }

    /// Looks several ticks up under one lock.
    func outcomes(of ticks: some Sequence<Int>, _ body: (Outcome) -> Void) {
        state.withLock { state in
            for tick in ticks {
                switch state.moments[tick & mask] {
                case 0: body(.pending)
                case Self.failed: body(.failed)
                case let moment: body(.committed(at: moment))
                }
            }
        }
    }
}
