import CPostgres
import Glibc
import HTTP
import Hub
import Matching
import Push
import Synchronization

/// What other threads want of the push service's worker. Safe from any thread.
final class PushServiceMailbox: Sendable {
    enum Item: Sendable {
        /// New rows of the tables that hold messages.
        case messages([RowChange])
        /// A call of the HTTP API, and where its answer goes.
        case call(PushCall, HTTPReply)
        case outcomes([(push: Push, outcome: PushOutcome)])
    }

    private struct State {
        var items: [Item] = []
        var calls = 0
        var messages = 0
        var taken = 0
        var settled = 0
        var endsAt: ContinuousClock.Instant?
        var rules: PushRules?
    }

    private let state = Mutex(State())
    /// An eventfd that is readable when there is something to do.
    let descriptor: Int32

    /// Calls that may wait; more are refused at once.
    static let mostCalls = 1000
    /// Messages that may wait while the database does not answer. Beyond that some are not pushed, and the log says so.
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
            state.items.append(.messages(messages))
            return (state.items.count == 1, 0)
        }
        if isFirst { wake() }
        return lost
    }

    /// - Returns: false where too many calls wait, or the service stops.
    func post(_ call: PushCall, _ reply: HTTPReply) -> Bool {
        let (isFirst, isTaken) = state.withLock { state in
            guard state.calls < Self.mostCalls, state.endsAt == nil else { return (false, false) }
            state.calls += 1
            state.items.append(.call(call, reply))
            return (state.items.count == 1, true)
        }
        if isFirst { wake() }
        return isTaken
    }

    func post(outcomes: [(push: Push, outcome: PushOutcome)]) {
        let isFirst = state.withLock { state in
            state.items.append(.outcomes(outcomes))
            return state.items.count == 1
        }
        if isFirst { wake() }
    }

    /// The rules that hold from here on.
    func post(rules: PushRules) {
        state.withLock { $0.rules = rules }
        wake()
    }

    func takeAll() -> [Item] {
        var count: eventfd_t = 0
        eventfd_read(descriptor, &count)
        return state.withLock { state in
            defer {
                state.items = []
                state.calls = 0
            }
            return state.items
        }
    }

    /// The rules that were posted since the last call; nil where none were.
    func takeRules() -> PushRules? {
        state.withLock { state in
            defer { state.rules = nil }
            return state.rules
        }
    }

    /// What is to be done with this many messages is done, and would survive the end of the hub.
    func settled(_ count: Int) {
        state.withLock { state in
            state.settled += count
            state.messages -= count
        }
    }

    /// How many messages came in, and how many of these, counted from the first, are settled.
    var counts: (taken: Int, settled: Int) { state.withLock { ($0.taken, $0.settled) } }

    func stop(by deadline: ContinuousClock.Instant) {
        state.withLock { $0.endsAt = $0.endsAt ?? deadline }
        wake()
    }

    /// When the worker is to have ended; nil as long as nobody wants it to.
    var deadline: ContinuousClock.Instant? { state.withLock { $0.endsAt } }

    private func wake() { _ = eventfd_write(descriptor, 1) }
}
