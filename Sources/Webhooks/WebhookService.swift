import CCurl
package import Hub
package import Logging
import Workers

/// Tells the application's backend what happens on this hub (`webhooks.url`), on its own thread.
///
/// One message is under way at a time, and the next is sent once it is accepted: so events arrive in the order in which they happened. A
/// message that is not accepted is repeated, after growing pauses, until it is; meanwhile events wait in `Happenings`, which is bounded.
package final class WebhookService: Sendable {
    package struct Setup: Sendable {
        let url: String
        let secret: WebhookSecret
        let node: String

        package init(url: String, secret: WebhookSecret, node: String) {
            self.url = url
            self.secret = secret
            self.node = node
        }
    }

    package struct Statistics: Sendable {
        package var sent = 0
        package var attemptsFailed = 0
        /// Events that the backend refused for good, or that were left when the hub stopped.
        package var lost = 0
        package var waiting = 0
        package var missed = 0
    }

    private struct Orders: Sendable {
        var stopBy: ContinuousClock.Instant?
        var statistics = Statistics()
    }

    /// How long events are gathered for one message.
    private static let gathering = Duration.milliseconds(200)
    private static let eventsOfMessage = 500
    private static let bytesOfMessage = 512 << 10

    private let setup: Setup
    private let happenings: Happenings
    private let logger: Logger
    private let mailbox = WorkerMailbox(Orders())
    private let thread = WorkerThread(named: "roost webhooks")

    package init(_ setup: Setup, _ happenings: Happenings, logger: Logger) {
        self.setup = setup
        self.happenings = happenings
        self.logger = logger
    }

    package func start() {
        thread.start { [self] in runUntilStopped() }
    }

    /// Sends waiting messages for at most this time, and ends the thread.
    package func stop(within time: Duration) {
        let deadline = ContinuousClock.now + time
        mailbox.post { $0.stopBy = deadline }
        thread.join(by: deadline + .milliseconds(500))
    }

    package var statistics: Statistics {
        var statistics = mailbox.withContent { $0.statistics }
        statistics.waiting += happenings.waiting
        statistics.missed = happenings.missed
        return statistics
    }

    // MARK: The thread

    private func runUntilStopped() {
        guard let requests = roost_requests_create() else {
            return logger.error("webhooks.url gets no events: libcurl could not start")
        }
        defer { roost_requests_destroy(requests) }
        var delivery = WebhookDelivery()
        var missed = 0
        while true {
            let now = ContinuousClock.now
            if delivery.message == nil { takeNextMessage(&delivery) }
            let stopBy = mailbox.takeMail { $0.stopBy }
            reportMissed(&missed)
            guard let message = delivery.message else {
                if stopBy != nil { break }
                mailbox.wait(until: now + Self.gathering)
                continue
            }
            if let stopBy, now >= stopBy { break }
            guard delivery.isDue(at: now) else {
                mailbox.wait(until: min(delivery.retryAt ?? now, stopBy ?? now + .seconds(60)))
                continue
            }
            // Once the hub is stopping, no attempt may outlast the remaining time.
            let limit: Duration = stopBy.map { max(.milliseconds(100), $0 - now) } ?? .seconds(10)
            handleAnswer(postMessage(message, requests, within: limit), &delivery)
        }
        let left = (delivery.message?.count ?? 0) + happenings.waiting
        if left > 0 {
            mailbox.withContent { $0.statistics.lost += left }
            logger.warning("The hub stops, and \(left) events are not sent to webhooks.url")
        }
    }

    private func takeNextMessage(_ delivery: inout WebhookDelivery) {
        let events = happenings.takeEvents(upTo: Self.eventsOfMessage, mostBytes: Self.bytesOfMessage)
        guard !events.isEmpty else { return }
        delivery.startMessage(WebhookMessage(id: Self.newID(), events, node: setup.node))
        mailbox.withContent { $0.statistics.waiting = events.count }
    }

    /// - Returns: the answer's status, or the error that prevented one.
    private func postMessage(_ message: WebhookMessage, _ requests: OpaquePointer, within limit: Duration)
        -> WebhookAnswer
    {
        let timestamp = WebhookClock.seconds()
        let headers = [
            "content-type: application/json", "webhook-id: \(message.id)", "webhook-timestamp: \(timestamp)",
            "traceparent: \(message.traceparent)",
            "webhook-signature: \(setup.secret.signature(of: message.body, id: message.id, timestamp: timestamp))",
        ]
        return WebhookPost.postBody(message.body, to: setup.url, headers, requests, within: limit)
    }

    private func handleAnswer(_ answer: WebhookAnswer, _ delivery: inout WebhookDelivery) {
        let count = delivery.message?.count ?? 0
        switch delivery.handleAnswer(answer, at: .now) {
        case .taken(let failures):
            mailbox.withContent {
                $0.statistics.sent += count
                $0.statistics.waiting = 0
            }
            if failures > 2 { logger.notice("webhooks.url takes events again, after \(failures) attempts") }
        case .again(let failures):
            mailbox.withContent { $0.statistics.attemptsFailed += 1 }
            // The third failure: a backend that restarts is no cause for concern.
            if failures == 3 {
                logger.warning("webhooks.url takes no events (\(answer)); they wait and are sent again")
            }
        case .refused:
            mailbox.withContent {
                $0.statistics.attemptsFailed += 1
                $0.statistics.lost += count
                $0.statistics.waiting = 0
            }
            logger.error("webhooks.url refuses a message for good (\(answer)): \(count) events are lost")
        }
    }

    private func reportMissed(_ told: inout Int) {
        let missed = happenings.missed
        guard missed > told else { return }
        logger.warning(
            "\(missed - told) events for webhooks.url were dropped: more were waiting than webhooks.queue allows")
        told = missed
    }

    private static func newID() -> String {
        "msg_" + String(UInt64.random(in: .min ... .max), radix: 36)
            + String(UInt64.random(in: .min ... .max), radix: 36)
    }
}
