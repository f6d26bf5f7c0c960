import ChangeFeed
import Gateway
package import Hub
package import Logging
package import Push
import Synchronization

/// Brings together what pushes take: the rows that were written, who is away, what Postgres keeps of phones and
/// activities, and the client that talks to Apple.
///
/// It has one thread and one connection of its own; nothing else of the hub ever waits for it. What it decides is made
/// durable before it is sent, so a hub that is killed loses no alert that it had not begun to send, and repeats none.
package final class PushDesk: Sendable {
    private let mailbox = DeskMailbox()
    private let setup: DeskSetup
    private let client: PushClient
    private let thread = Mutex<FeedThread?>(nil)
    private let published = DeskPublished()
    let reader: CallReader

    /// - Parameters:
    ///   - show: tells an activity's state to its user's sockets.
    ///   - clock: the machine's.
    package init(
        conninfo: String, rules: PushRules, apns: APNsConfiguration, whereabouts: Whereabouts, logger: Logger,
        clock: @escaping @Sendable () -> HubTime, show: @escaping @Sendable (ActivitySummary) -> Void
    ) {
        setup = DeskSetup(
            conninfo: conninfo, rules: rules, whereabouts: whereabouts, logger: logger, clock: clock, show: show)
        reader = CallReader(bundle: rules.bundle, environment: rules.environment)
        client = PushClient(apns, logger: logger) { [mailbox] outcomes in
            mailbox.post(outcomes: outcomes.map { (push: $0.0, outcome: $0.1) })
        }
    }

    /// Starts the threads. Once.
    package func start() {
        client.start()
        let (setup, mailbox, client, published) = (setup, mailbox, client, published)
        thread.withLock { thread in
            guard thread == nil else { return }
            thread = FeedThread(named: "roost-push") {
                DeskLoop(setup, mailbox, client, published).run()
            }
        }
    }

    /// Sends what is on its way, and puts back what has not left. To be called when the feed has stopped.
    package func stop(within limit: Duration) {
        let end = ContinuousClock.now + limit
        client.stop(within: limit / 2)
        mailbox.stop(by: end)
        let running = thread.withLock { thread in
            defer { thread = nil }
            return thread
        }
        // A database that hangs must not keep the process; whoever stops a desk is about to end it.
        if let running, published.hasEnded(by: end + .milliseconds(100)) { running.join() }
    }

    /// Other texts and times from here on.
    package func adopt(_ rules: PushRules) { mailbox.post(rules: rules) }

    func take(_ call: PushCall, _ reply: HTTPReply) -> Bool { mailbox.post(call: .call(call, reply)) }

    package var statistics: DeskStatistics { published.statistics }
    package var clientStatistics: PushStatistics { client.statistics }
}

extension PushDesk: ChangeTap {
    package func take(_ changes: [RowChange]) {
        let messages = changes.filter(setup.rules.isMessage)
        guard !messages.isEmpty else { return }
        let lost = mailbox.post(messages: messages)
        if lost > 0 { published.lost(lost, setup.logger) }
    }

    package var taken: Int { mailbox.counts.taken }
    package var settled: Int { mailbox.counts.settled }
}
