import Administration
import Hub
import Push

/// Asks Google whether it accepts the service account, with a push to a token that no app has.
struct FCMExamination {
    private let fcm: FCMConfiguration
    private let url: String?

    private static let subject = "push to Android"
    /// No app has this token; only its form is valid.
    private static let nobody = PushToken("roost-doctor:nobody-has-this-token", of: .fcm)
    private static let patience = Duration.seconds(10)

    init(_ fcm: FCMConfiguration, url: String?) {
        self.fcm = fcm
        self.url = url
    }

    func run() async -> Finding {
        guard let nobody = Self.nobody else { return Finding(.error, Self.subject, "There is no token.") }
        let test = TestPush(
            .fcm(fcm), to: .device(PushDestination(token: nobody, bundle: "")),
            #"{"notification":{"title":"Roost","body":"A test push."}}"#)
        let (_, outcome, statistics) = await test.send(within: Self.patience)
        let problem = statistics.circuitsOpen.values.first
        switch outcome {
        // Google looked at the token, so it accepts the account.
        case .badToken, .unregistered, .delivered:
            return Finding(.good, Self.subject, "Google takes the service account of project \(fcm.account.project).")
        case .refused(let status, let reason):
            return Finding(
                .error, Self.subject,
                "Google refuses the service account of project \(fcm.account.project): \(problem ?? "\(status) \(reason)"); make another "
                    + "key in the Firebase console, and see that the Firebase Cloud Messaging API (V1) is enabled there."
            )
        default:
            return Finding(
                .error, Self.subject,
                "Google did not answer within \(Self.patience.components.seconds) s; see whether this machine reaches "
                    + "\(url ?? "fcm.googleapis.com and oauth2.googleapis.com, port 443").")
        }
    }
}
