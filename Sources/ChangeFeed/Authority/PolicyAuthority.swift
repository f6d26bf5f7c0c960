package import Hub
package import Logging
import Synchronization

/// Decides about private channels by the policies on `realtime.messages` (wire-protocol B), and reads what is replayed.
///
/// It has one thread and two connections of its own, so that joins never wait for the feed, nor the feed for them.
/// Questions that arrive while others are answered are answered together.
///
/// **Shutdown**: `stop` answers what waits with `unavailable`. **Overload**: beyond what the inbox holds, new questions
/// are answered `unavailable` at once; clients come again.
package final class PolicyAuthority: ChannelAuthority {
    private let conninfo: String
    private let logger: Logger
    private let inbox = AuthorityInbox()
    private let thread = Mutex<FeedThread?>(nil)

    package init(conninfo: String, logger: Logger) {
        self.conninfo = conninfo
        self.logger = logger
    }

    /// Starts the thread; it connects, and keeps trying. Once in the life of an authority.
    package func start() {
        let (conninfo, logger, inbox) = (conninfo, logger, inbox)
        thread.withLock { thread in
            guard thread == nil else { return }
            thread = FeedThread(named: "roost-authority") {
                var loop = AuthorityLoop(conninfo: conninfo, logger: logger, inbox: inbox)
                loop.run()
            }
        }
    }

    /// Ends the thread. One that hangs in a policy or in the network is left behind after `patience`: whoever stops an
    /// authority is about to end the process.
    package func stop(within patience: Duration = .seconds(3)) {
        inbox.stop()
        let running = thread.withLock { thread in
            defer { thread = nil }
            return thread
        }
        if let running, inbox.hasEnded(within: patience) { running.join() }
    }

    package func decide(
        _ question: AuthorizationQuestion, answer: @escaping @Sendable (AuthorizationOutcome) -> Void
    ) {
        if !inbox.post(PendingQuestion(question: question, answer: answer)) { answer(.unavailable) }
    }
}

/// A question and the way back.
struct PendingQuestion: Sendable {
    let question: AuthorizationQuestion
    let answer: @Sendable (AuthorizationOutcome) -> Void

    var bytes: Int { question.topic.utf8.count + question.claims.json.count }
}
