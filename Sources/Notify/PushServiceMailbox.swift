import CPostgres
import Glibc
import Hub
import Push
import Synchronization

/// The door to the desk for other threads.
final class DeskMailbox: Sendable {
    private struct State {
        var tasks: [DeskTask] = []
        var calls = 0
        var messages = 0
        var taken = 0
        var settled = 0
        var endsAt: ContinuousClock.Instant?
        var rules: PushRules?
    }

    private let state = Mutex(State())
    /// Readable when there is something to do.
    let descriptor: Int32

    /// Requests that may wait; more are refused at once.
    static let mostCalls = 1000
    /// Messages that may wait while the database does not answer. Beyond that some are not pushed, and that is said.
    static let mostMessages = 20_000

    init() {
        descriptor = eventfd(0, roost_eventfd_flags)
        precondition(descriptor >= 0, "no file descriptor left for pushes")
    }

    deinit { close(descriptor) }

    /// - Returns: how many messages had to be left out.
    func post(messages: [RowChange]) -> Int {
        let (isFirst, lost) = state.withLock { state in
            guard state.messages + messages.count <= Self.mostMessages else { return (false, messages.count) }
            state.taken += messages.count
            state.messages += messages.count
            state.tasks.append(.messages(messages))
            return (state.tasks.count == 1, 0)
        }
        if isFirst { wake() }
        return lost
    }

    /// - Returns: false where too many wait.
    func post(call: DeskTask) -> Bool {
        let (isFirst, isTaken) = state.withLock { state in
            guard state.calls < Self.mostCalls, state.endsAt == nil else { return (false, false) }
            state.calls += 1
            state.tasks.append(call)
            return (state.tasks.count == 1, true)
        }
        if isFirst { wake() }
        return isTaken
    }

    func post(outcomes: [(push: Push, outcome: PushOutcome)]) {
        let isFirst = state.withLock { state in
            state.tasks.append(.outcomes(outcomes))
            return state.tasks.count == 1
        }
        if isFirst { wake() }
    }

    func takeAll() -> [DeskTask] {
        var count: eventfd_t = 0
        eventfd_read(descriptor, &count)
        return state.withLock { state in
            defer {
                state.tasks = []
                state.calls = 0
            }
            return state.tasks
        }
    }

    /// Other rules from here on.
    func post(rules: PushRules) {
        state.withLock { $0.rules = rules }
        wake()
    }

    /// Nil where there are no others than before.
    func takeRules() -> PushRules? {
        state.withLock { state in
            defer { state.rules = nil }
            return state.rules
        }
    }

    /// What is to be done with so many messages is done, and would survive the hub.
    func settled(_ count: Int) {
        state.withLock { state in
            state.settled += count
            state.messages -= count
        }
    }

    var counts: (taken: Int, settled: Int) { state.withLock { ($0.taken, $0.settled) } }

    func stop(by deadline: ContinuousClock.Instant) {
        state.withLock { $0.endsAt = $0.endsAt ?? deadline }
        wake()
    }

    /// When the desk is to have ended; nil as long as nobody wants it to.
    var deadline: ContinuousClock.Instant? { state.withLock { $0.endsAt } }

    private func wake() { _ = eventfd_write(descriptor, 1) }
}
