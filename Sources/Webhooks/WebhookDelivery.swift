import Workers

/// A backend's answer.
enum WebhookAnswer: Equatable, CustomStringConvertible {
    case status(Int)
    case problem(String)

    var description: String {
        switch self {
        case .status(let status): "HTTP \(status)"
        case .problem(let text): text
        }
    }

    var isTaken: Bool { if case .status(200..<300) = self { true } else { false } }

    /// The message itself is at fault, so repeating it is useless. Not 401, 403 or 404: those pass once a key or an address is corrected.
    var isRefusal: Bool { [.status(400), .status(413), .status(415), .status(422)].contains(self) }
}

/// Sends one message after the other, and decides when to repeat one that was not accepted.
struct WebhookDelivery {
    private(set) var message: WebhookMessage?
    private var schedule = RetrySchedule()
    private var failures = 0
    private var refusals = 0

    /// The attempts after which a message that is refused for its own sake is given up.
    static let mostRefusals = 8

    enum Outcome: Equatable {
        /// After this many failed attempts.
        case taken(failures: Int)
        case again(failures: Int)
        /// The message is given up.
        case refused
    }

    var retryAt: ContinuousClock.Instant? { schedule.retryAt }

    func isDue(at now: ContinuousClock.Instant) -> Bool { schedule.isDue(at: now) }

    mutating func startMessage(_ message: WebhookMessage) { self.message = message }

    mutating func handleAnswer(_ answer: WebhookAnswer, at now: ContinuousClock.Instant) -> Outcome {
        if answer.isTaken {
            defer { finishMessage() }
            return .taken(failures: failures)
        }
        refusals = answer.isRefusal ? refusals + 1 : 0
        if refusals >= Self.mostRefusals {
            finishMessage()
            return .refused
        }
        failures += 1
        schedule.attemptFailed(at: now)
        return .again(failures: failures)
    }

    private mutating func finishMessage() {
        message = nil
        (failures, refusals) = (0, 0)
        schedule.attemptSucceeded()
    }
}
