import Hub

/// Apple Push Notification service (Apple, "Sending notification requests to APNs").
struct APNsDialect: PushDialect {
    private let configuration: APNsConfiguration
    private var tokens: ProviderTokenCache

    init(_ configuration: APNsConfiguration) {
        self.configuration = configuration
        tokens = ProviderTokenCache(configuration.key)
    }

    var limits: PushLimits { configuration.limits }
    var hasTwoHosts: Bool { configuration.hasTwoHosts }
    func origin(of server: ServerName) -> String { configuration.origin(of: server) }
    func title(of server: ServerName) -> String { "APNs (\(server))" }

    func outcomeUnsent(_ push: Push) -> PushOutcome? { push.outcomeUnsent }

    mutating func authorization(for server: ServerName, at now: HubTime) throws -> PushAuthorization? {
        let token = try tokens.token(at: now)
        return PushAuthorization(text: token.jwt, generation: token.generation)
    }

    func request(for push: Push, authorizedBy authorization: PushAuthorization, at now: HubTime) -> PushRequest? {
        PushRequest(headers: push.headers(authorizedBy: authorization.text), body: push.payload)
    }

    func read(_ answer: Answer) -> Answer { answer.body.isEmpty ? answer : APNsAnswer.read(answer) }
    func verdict(on answer: Answer) -> AnswerVerdict { APNsAnswer.verdict(on: answer) }
    func countedName(of answer: Answer) -> String { KnownReasons.apns.name(of: answer) }
    mutating func expire(_ generation: Int, by answer: Answer, of server: ServerName, at now: HubTime) -> Bool {
        tokens.expire(generation, at: now)
    }
    var keyName: String { configuration.key.name }
    func advice(on answer: Answer, at unix: Int64) -> String { APNsAnswer.advice(on: answer, at: unix) }

    var credentialsMade: Int { tokens.minted }
    func credentialAge(at now: HubTime) -> Int64? { tokens.age(at: now) }
}
