import HTTP
import Hub
import Matching
import Push
import Workers

/// What other threads want of the push service's worker. Safe from any thread.
final class PushServiceMailbox: Sendable {
    enum Item: Sendable {
        /// New rows of the tables that hold messages.
        case messages([RowChange])
        /// Rows that were written in tables whose rows are pushed at a time.
        case timed([RowChange])
        /// A call of the HTTP API, and where its answer goes.
        case call(PushCall, HTTPReply)
        case outcomes([(push: Push, outcome: PushOutcome)])
        /// What sockets have certainly received.
        case answers([ReceiptAnswer])
    }

    private struct Content {
        var items: [Item] = []
        var calls = 0
        var messages = 0
        var timed = 0
        var taken = 0
        var settled = 0
        var isStopping = false
        var maySend = true
        var rules: PushRules?
    }

    private let mailbox = WorkerMailbox(Content())
    /// When the worker is to have ended.
    let stopSignal = StopSignal()

    /// Calls that may wait; more are refused at once.
    static let mostCalls = 1000
    /// Messages that may wait while the database does not answer. Beyond that some are not pushed, and the log says so.
    static let mostMessages = 20_000

    /// - Returns: how many messages had to be left out.
    func post(messages: [RowChange]) -> Int {
        mailbox.post { content in
            guard content.messages + messages.count <= Self.mostMessages else { return messages.count }
            content.taken += messages.count
            content.messages += messages.count
            content.items.append(.messages(messages))
            return 0
        }
    }

    /// What there is no room for is found without this, a little later.
    func post(timed changes: [RowChange]) {
        mailbox.post { content in
            guard content.timed < Self.mostMessages else { return }
            content.timed += changes.count
            content.items.append(.timed(changes))
        }
    }

    /// - Returns: false where too many calls wait, or the service stops.
    func post(_ call: PushCall, _ reply: HTTPReply) -> Bool {
        mailbox.post { content in
            guard content.calls < Self.mostCalls, !content.isStopping else { return false }
            content.calls += 1
            content.items.append(.call(call, reply))
            return true
        }
    }

    func post(outcomes: [(push: Push, outcome: PushOutcome)]) {
        mailbox.post { $0.items.append(.outcomes(outcomes)) }
    }

    func post(answers: [ReceiptAnswer]) { mailbox.post { $0.items.append(.answers(answers)) } }

    /// The rules that hold from here on.
    func post(rules: PushRules) { mailbox.post { $0.rules = rules } }

    func takeAll() -> [Item] {
        mailbox.takeMail { content in
            defer {
                content.items = []
                content.calls = 0
                content.timed = 0
            }
            return content.items
        }
    }

    /// The rules that were posted since the last call; nil where none were.
    func takeRules() -> PushRules? {
        mailbox.withContent { content in
            defer { content.rules = nil }
            return content.rules
        }
    }

    /// What is to be done with this many messages is done, and would survive the end of the hub.
    func settled(_ count: Int) {
        mailbox.withContent { content in
            content.settled += count
            content.messages -= count
        }
    }

    /// How many messages came in, and how many of these, counted from the first, are settled.
    var counts: (taken: Int, settled: Int) { mailbox.withContent { ($0.taken, $0.settled) } }

    /// Nothing more is to be handed to the client: it stops.
    func stopSending() { mailbox.post { $0.maySend = false } }

    var maySend: Bool { mailbox.withContent { $0.maySend } }

    func stop(by deadline: ContinuousClock.Instant) {
        stopSignal.stop(by: deadline)
        mailbox.post { $0.isStopping = true }
    }

    /// When the worker is to have ended; nil as long as nobody wants it to.
    var deadline: ContinuousClock.Instant? { stopSignal.deadline }

    /// Waits until there is something to do.
    func wait(until deadline: ContinuousClock.Instant) { mailbox.wait(until: deadline) }
}
