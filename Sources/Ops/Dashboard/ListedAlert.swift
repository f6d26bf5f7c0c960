import Documents
package import Wire

/// Whose alerts the operator's page lists.
package enum AlertSubject: Hashable, Sendable {
    /// By the claim `sub`.
    case user(Name)
    /// By the primary key, or as `SCHEMA.TABLE KEY`.
    case message(Name)
}

/// What became of an alert, for the operator's page.
package struct ListedAlert: Sendable {
    package var message: String
    package var user: String
    /// When its message came, in milliseconds since 1970.
    package var at: Int64
    /// In words, and the time that they end with, in milliseconds since 1970; nil where they are whole.
    package var outcome: String
    package var outcomeTime: Int64?
    /// Why, in words; nil where nobody knows.
    package var reason: String?
    /// Beginnings of tokens, and what Apple said; nil where no phone was sent it.
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
            return answer(topic, Self.json([], problem: "This hub sends no pushes: apns.topic is not set."))
        }
        list(subject, Self.most) { self.answer(topic, Self.json($0, problem: $1)) }
    }

    private static func json(_ alerts: [ListedAlert], problem: String?) -> JSONDocument {
        ["alerts": .array(alerts.map(\.json)), "problem": .optional(problem)]
    }
}
