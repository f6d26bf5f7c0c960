import Hub

/// Firebase Cloud Messaging, its HTTP v1 API (Firebase, "REST Resource: projects.messages", "FCM Error Codes", "Scale requests").
struct FCMDialect: PushDialect {
    private let configuration: FCMConfiguration
    private let path: String
    private var tokens: AccessTokenCache

    init(_ configuration: FCMConfiguration) {
        self.configuration = configuration
        path = "/v1/projects/\(configuration.account.project)/messages:send"
        tokens = AccessTokenCache(configuration.account)
    }

    var limits: PushLimits { configuration.limits }

    func origin(of server: ServerName) -> String {
        guard server != .fcmTokens else { return configuration.account.tokenURL }
        let url = configuration.url ?? "https://fcm.googleapis.com"
        return url.hasSuffix("/") ? String(url.dropLast()) : url
    }

    func title(of server: ServerName) -> String { server == .fcmTokens ? "Google's token server" : "FCM" }

    func outcomeUnsent(_ push: Push) -> PushOutcome? {
        if push.payload.isEmpty { return .refused(status: 400, reason: "INVALID_ARGUMENT") }
        guard push.payload.count <= PayloadLimit.fcm else {
            return .tooLarge(bytes: push.payload.count, limit: PayloadLimit.fcm)
        }
        return nil
    }

    mutating func authorization(for server: ServerName, at now: HubTime) throws -> PushAuthorization? {
        tokens.authorization(at: now)
    }

    func request(for push: Push, authorizedBy authorization: PushAuthorization, at now: HubTime) -> PushRequest? {
        guard let body = FCMMessage.body(of: push, at: now) else { return nil }
        var headers = RequestHeaders()
        headers.add(":path", path)
        headers.add("authorization", authorization.text)
        headers.add("content-type", "application/json")
        return PushRequest(headers: headers, body: body, indexesAll: true)
    }

    func read(_ answer: Answer) -> Answer { answer.body.isEmpty ? answer : FCMAnswer.read(answer) }
    func verdict(on answer: Answer) -> AnswerVerdict { FCMAnswer.verdict(on: answer) }
    func countedName(of answer: Answer) -> String { KnownReasons.fcm.name(of: answer) }
    mutating func expire(_ generation: Int, by answer: Answer, of server: ServerName, at now: HubTime) -> Bool {
        tokens.expire(generation)
    }
    var keyName: String { "the service account of project \(configuration.account.project)" }
    func advice(on answer: Answer, at unix: Int64) -> String { FCMAnswer.advice(on: answer) }

    mutating func credentialRequest(at now: HubTime) throws -> (server: ServerName, request: PushRequest)? {
        try tokens.request(at: now).map { (.fcmTokens, $0) }
    }
    mutating func take(credential answer: Answer?, at now: HubTime) -> CredentialVerdict {
        tokens.take(answer, at: now)
    }
    func nextCredential(at now: HubTime) -> Int64? { tokens.nextDue(at: now) }

    var credentialsMade: Int { tokens.fetched }
    func credentialAge(at now: HubTime) -> Int64? { tokens.age(at: now) }
}
