import Administration
import Hub
import Push
import Settings
import Stores
import Wire

/// Checks of `roost doctor` on pushes: whether Apple accepts the key, and whether alerts work.
struct PushExamination {
    private let configuration: RoostConfiguration
    /// The phone for a test push; nil: the push goes to an unused token, which tells as much about the key.
    private let token: PushToken?
    private static let subject = "push"
    private static let nobody = PushToken(String(repeating: "0", count: 64))
    private static let patience = Duration.seconds(10)

    init(_ configuration: RoostConfiguration, token: PushToken?) {
        self.configuration = configuration
        self.token = token
    }

    func runChecks(conninfo: String) async -> [Finding] {
        let settings = configuration.push
        guard settings.isAnythingSent || configuration.webPush.privateKey != nil else {
            let isWanted = token != nil
            return [
                Finding(
                    isWanted ? .error : .good, Self.subject,
                    "This hub sends no pushes: neither apns.topic, apns.team_id, apns.key_id and apns.private_key nor "
                        + "fcm.service_account are set.")
            ]
        }
        do {
            let bundle = settings.topic ?? ""
            let rules = try configuration.pushRules(bundle: bundle, audience: nil, facts: nil)
            var findings: [Finding] = []
            if let apns = try configuration.apnsConfiguration() { findings.append(await sendTestPush(apns, bundle)) }
            if let fcm = try configuration.fcm() {
                findings.append(await FCMExamination(fcm, url: settings.fcmURL).run())
            }
            if let audience = settings.audience {
                findings += Doctor.examine(audience: audience, tables: settings.alertTables, conninfo: conninfo)
                findings += Doctor.examineAlerts(
                    alertsWhen: settings.alertWhen, proofSeconds: settings.alertProofSeconds, conninfo: conninfo)
            } else {
                findings.append(
                    Finding(.warning, "alerts", "alerts.audience is not set, so nobody is alerted of new messages."))
            }
            findings += Doctor.examine(timed: try configuration.timedSources(), conninfo: conninfo)
            let sections = rules.templates.map { ($0.key.text, $0.value.names) }
            findings += Doctor.examine(
                templates: Dictionary(uniqueKeysWithValues: sections), tables: settings.alertTables,
                audience: settings.audience, conninfo: conninfo)
            if let tokens = settings.tokens {
                findings += Doctor.examine(
                    tokens: AppTokens(tokens, environment: configuration.pushEnvironment, bundle: Name(bundle)),
                    conninfo: conninfo)
            }
            return findings
        } catch {
            return [Finding(.error, Self.subject, "\(error)")]
        }
    }

    private func sendTestPush(_ apns: APNsConfiguration, _ bundle: String) async -> Finding {
        guard let target = token ?? Self.nobody else { return Finding(.error, Self.subject, "There is no token.") }
        let test = TestPush(
            .apns(apns),
            to: .device(
                PushDestination(token: target, environment: configuration.pushEnvironment, bundle: Name(bundle))),
            #"{"aps":{"alert":{"title":"Roost","body":"A test push."}}}"#)
        let (push, outcome, statistics) = await test.send(within: Self.patience)
        return outcomeFinding(outcome, push?.foundEnvironment, statistics, asksBoth: apns.hasTwoHosts)
    }

    private func outcomeFinding(
        _ outcome: PushOutcome?, _ found: PushEnvironment?, _ statistics: PushStatistics, asksBoth: Bool
    ) -> Finding {
        let environment = configuration.pushEnvironment
        let problem = statistics.circuitsOpen.values.first
        switch outcome {
        case .delivered:
            guard let found else { return Finding(.good, Self.subject, "Apple took the test push (\(environment)).") }
            if statistics.keyEnvironment == found { return scopeFinding(.warning) }
            return Finding(
                .good, Self.subject,
                "Apple took the test push in \(found.phrase), although apns.environment says \(environment): the hub "
                    + "finds that for each token by itself.")
        case .badToken(AnswerReason.badToken) where token == nil:
            if let only = statistics.keyEnvironment {
                return Finding(
                    .good, Self.subject,
                    "Apple takes the key and the topic, but in \(only.phrase) alone: phones whose app is of "
                        + "\(only.other.phrase) get no pushes.")
            }
            return Finding(
                .good, Self.subject,
                "Apple takes the key and the topic (\(environment)); --push-token sends a test push to a phone.")
        case .badToken(AnswerReason.badEnvironmentKey):
            return scopeFinding(token == nil ? .warning : .error)
        case .badToken(AnswerReason.badToken) where asksBoth:
            return Finding(
                .error, Self.subject,
                "Apple refuses the token in both environments (\(AnswerReason.badToken)): it is not a token, or no longer."
            )
        case .badToken(let reason):
            return Finding(
                .error, Self.subject,
                "Apple refuses the token (\(reason)): it is of another app than apns.topic, or not of \(environment).")
        case .unregistered:
            return Finding(.warning, Self.subject, "Apple takes the key; the token's app is not on the phone any more.")
        case .refused(let status, let reason):
            return Finding(.error, Self.subject, problem ?? "Apple refuses the push: \(status) \(reason).")
        default:
            if statistics.refused[AnswerReason.badToken] != nil {
                return Finding(
                    token == nil ? .warning : .error, Self.subject,
                    "Apple takes the key and does not know the token (\(environment)), and its other host cannot be reached "
                        + "(\(environment.other)): open port 443 to both.")
            }
            return Finding(
                .error, Self.subject,
                problem
                    ?? "Apple did not answer within \(Self.patience.components.seconds) s; see whether this machine "
                    + "reaches \(configuration.push.url ?? "api.push.apple.com, port 443").")
        }
    }

    /// The finding for a key of the other environment.
    private func scopeFinding(_ level: Finding.Severity) -> Finding {
        let environment = configuration.pushEnvironment
        return Finding(
            level, Self.subject,
            "The key is for \(environment.other.phrase) alone (\(AnswerReason.badEnvironmentKey)), and apns.environment "
                + "says \(environment): set it to \(environment.other), or make a key for both.")
    }
}
