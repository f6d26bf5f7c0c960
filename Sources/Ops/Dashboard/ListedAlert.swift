import Documents
package import Wire

/// The subject whose alerts the operator's page lists.
package enum AlertSubject: Hashable, Sendable {
    /// By the claim `sub`.
    case user(Name)
    /// A primary key, or `SCHEMA.TABLE KEY`.
    case message(Name)
}

/// An alert and its outcome, for the operator's page.
package struct ListedAlert: Sendable {
    package var message: String
    package var user: String
    /// The time of its message, in milliseconds since 1970.
    package var at: Int64
    /// The outcome in words, and a time that ends the sentence, in milliseconds since 1970; nil if it needs none.
    package var outcome: String
    package var outcomeTime: Int64?
    /// The reason in words; nil if unknown.
    package var reason: String?
    /// Prefixes of tokens with Apple's replies; nil if the alert was sent to no phone.
    package var phones: String?

    package init(
        message: String, user: String, at: Int64, outcome: String, outcomeTime: Int64?, reason: String?,
        phones: String?
    ) {
        self.message = message
        self.user = user
        self.at = at
        self.outcome = outcome
        self.outcomeTime = outcomeTime
        self.reason = reason
        self.phones = phones
    }

    fileprivate var json: JSONDocument {
        [
            "message": .text(message), "user": .text(user), "at": .integer(Int(at)), "outcome": .text(outcome),
            "time": outcomeTime.map { .integer(Int($0)) } ?? .null, "reason": .optional(reason),
            "phones": .optional(phones),
        ]
    }
}

extension Dashboard {
    func askForAlerts(of subject: AlertSubject) {
        let topic = OpsTopic.alerts(subject)
        guard let list = sources.alerts else {
            return pushState(
                topic, Self.alertsDocument([], problem: "This hub sends no pushes: apns.topic is not set."))
        }
        list(subject, Self.most) { self.pushState(topic, Self.alertsDocument($0, problem: $1)) }
    }

    private static func alertsDocument(_ alerts: [ListedAlert], problem: String?) -> JSONDocument {
        ["alerts": .array(alerts.map(\.json)), "problem": .optional(problem)]
    }
}
