import HTTP
import Hub
import Matching
import Push
import Workers

/// The requests of other threads to the push service's worker. Safe from any thread.
final class PushServiceMailbox: Sendable {
    enum Item: Sendable {
        /// New rows of the tables that hold messages.
        case messages([RowChange])
        /// Rows written to tables whose rows are pushed at a time.
        case timed([RowChange])
        /// A call of the HTTP API, and the reply to send its answer to.
        case call(PushCall, HTTPReply)
        case outcomes([(push: Push, outcome: PushOutcome)])
        /// The sockets' answers about the messages that they have certainly received.
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
    /// The signal that sets the worker's deadline to end.
    let stopSignal = StopSignal()

    /// The maximum number of waiting calls; more are refused at once.
    static let mostCalls = 1000
    /// Messages that may wait while the database does not answer. Above that some are not pushed, and the log reports it.
    static let mostMessages = 20_000

    /// - Returns: the number of messages that had to be left out.
    func post(messages: [RowChange]) -> Int {
        mailbox.post { content in
            guard content.messages + messages.count <= Self.mostMessages else { return messages.count }
            content.taken += messages.count
            content.messages += messages.count
            content.items.append(.messages(messages))
            return 0
        }
    }

    /// Posts rows to look at; those without room here are found a little later anyway.
    func post(timed changes: [RowChange]) {
        mailbox.post { content in
            guard content.timed < Self.mostMessages else { return }
            content.timed += changes.count
            content.items.append(.timed(changes))
        }
    }

    /// - Returns: false if too many calls wait, or the service stops.
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

    /// Posts the rules to use from now on.
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

    /// Returns the rules posted since the last call; nil if there were none.
    func takeRules() -> PushRules? {
        mailbox.withContent { content in
            defer { content.rules = nil }
            return content.rules
        }
    }

    /// Notes that the work on this many messages is done, and would survive the end of the hub.
    func settled(_ count: Int) {
        mailbox.withContent { content in
            content.settled += count
            content.messages -= count
        }
    }

    /// The number of messages received, and how many of these, counted from the first, are settled.
    var counts: (taken: Int, settled: Int) { mailbox.withContent { ($0.taken, $0.settled) } }

    /// Forbids handing anything more to the clients, which stop.
    func stopSending() { mailbox.post { $0.maySend = false } }

    var maySend: Bool { mailbox.withContent { $0.maySend } }

    func stop(by deadline: ContinuousClock.Instant) {
        stopSignal.stop(by: deadline)
        mailbox.post { $0.isStopping = true }
    }

    /// The time by which the worker must have ended; nil while it is not being stopped.
    var deadline: ContinuousClock.Instant? { stopSignal.deadline }

    /// Waits until there is something to do.
    func wait(until deadline: ContinuousClock.Instant) { mailbox.wait(until: deadline) }
}
