import Hub
import Signatures
import Wire

/// The push services of browsers (RFC 8030), each at the origin of a subscription's endpoint.
///
/// A request that was not answered is not sent again: these services know no ids, and would show the message twice.
struct WebPushDialect: PushDialect {
    private let configuration: WebPushConfiguration
    private var tokens: VAPIDTokens

    init(_ configuration: WebPushConfiguration) {
        self.configuration = configuration
        tokens = VAPIDTokens(configuration.key)
    }

    var limits: PushLimits { configuration.limits }
    var endpointRules: EndpointRules? { configuration.rules }

    func origin(of server: ServerName) -> String { server.webOrigin?.text ?? "" }
    func title(of server: ServerName) -> String { "The push service \(server.webOrigin?.text ?? "")" }

    /// Browsers of a few makers have nearly all subscriptions. Edge's service has many names; one that was reached counts, because no
    /// other service has a certificate for it.
    func isStranger(_ server: ServerName, wasReached: Bool) -> Bool {
        guard let host = server.webOrigin?.text.dropFirst("https://".count) else { return false }
        if Self.makers.contains(String(host)) || configuration.rules.isOwn(host: host) { return false }
        return !(host.hasSuffix(".notify.windows.com") && wasReached)
    }

    private static let makers = [
        "fcm.googleapis.com", "updates.push.services.mozilla.com", "web.push.apple.com",
    ]

    private func endpoint(of push: Push) -> PushEndpoint? {
        guard case .device(let destination) = push.target else { return nil }
        // `outcomeUnsent` has already reported an invalid one.
        do throws(EndpointError) { return try PushEndpoint(destination.token.text, under: configuration.rules) } catch {
            return nil
        }
    }

    func outcomeUnsent(_ push: Push) -> PushOutcome? {
        guard case .device(let destination) = push.target, push.keys != nil else {
            return .badToken(reason: "no keys of a subscription")
        }
        do throws(EndpointError) { _ = try PushEndpoint(destination.token.text, under: configuration.rules) } catch {
            // The endpoint was registered under other rules.
            return .badToken(reason: error.description)
        }
        if push.payload.count > MessageEncryption.longestText {
            return .tooLarge(bytes: push.payload.count, limit: MessageEncryption.longestText)
        }
        return nil
    }

    mutating func authorization(for server: ServerName, at now: HubTime) throws -> PushAuthorization? {
        guard let origin = server.webOrigin else { return nil }
        guard let authorization = tokens.authorization(for: origin, at: now) else { throw VAPIDKeyError.key }
        return authorization
    }

    func request(for push: Push, authorizedBy authorization: PushAuthorization, at now: HubTime) -> PushRequest? {
        var random = SystemRandomNumberGenerator()
        guard let endpoint = endpoint(of: push), let keys = push.keys,
            let body = MessageEncryption.encrypt(push.payload, for: keys, using: &random)
        else { return nil }
        var headers = RequestHeaders()
        headers.add(":path", endpoint.path)
        headers.add("authorization", authorization.text)
        headers.add("content-encoding", "aes128gcm")
        headers.add("content-type", "application/octet-stream")
        headers.add("content-length", String(body.count))
        headers.add("ttl", String(max(0, push.expiration - now.unix / 1000)))
        headers.add("urgency", push.urgency)
        if let topic = push.webTopic { headers.add("topic", topic) }
        return PushRequest(headers: headers, body: body)
    }

    // MARK: Answers

    func read(_ answer: Answer) -> Answer {
        var answer = answer
        // The body is a sentence, or JSON, or a page: for the log alone.
        answer.reason = Answer.printable(String(decoding: answer.body, as: UTF8.self))
        return answer
    }

    /// RFC 8030, sections 5 and 7.3; RFC 8292, section 4.2.
    func verdict(on answer: Answer) -> AnswerVerdict {
        switch answer.status {
        case 200..<300: .delivered
        case 404, 410: .unregistered(since: nil)
        case 401, 403: .staleCredential
        case 413: .tooLarge
        case 429: .laterForThisLane
        case 500...: .laterForAll
        default: .refused
        }
    }

    func countedName(of answer: Answer) -> String {
        (400..<600).contains(answer.status) ? "status \(answer.status)" : "other"
    }

    /// Gives a service whose clock differs a token dated by its own clock, once.
    mutating func expire(_ generation: Int, by answer: Answer, of server: ServerName, at now: HubTime) -> Bool {
        guard let origin = server.webOrigin else { return false }
        return tokens.expire(generation, of: origin, date: answer.date, at: now)
    }

    /// This browser may have subscribed with another key, while the others' subscriptions are fine.
    var refusalsConcernOneDevice: Bool { true }

    func advice(on answer: Answer, at unix: Int64) -> String {
        "it does not take the key of web_push.private_key for this subscription: it was made for another one, or the hub's clock is "
            + "wrong. The browser has to subscribe again with the key that GET /api/push/key says."
    }

    func shortened(_ payload: [UInt8]) -> [UInt8]? { BrowserPayload.shortened(payload) }

    var keyName: String { "the key of web_push.private_key" }
    var credentialsMade: Int { tokens.signed }
    func credentialAge(at now: HubTime) -> Int64? { nil }
}

extension Push {
    /// The urgency for a browser that saves its battery (RFC 8030, section 5.3).
    fileprivate var urgency: String { priority >= 10 ? "high" : priority >= 5 ? "normal" : "low" }

    /// The topic of which a push service keeps only the newest message while a browser is away: at most 32 letters of base64url (RFC
    /// 8030, section 5.4).
    fileprivate var webTopic: String? {
        collapseID.map { Base64URL.encode(HashFunction.sha256.hash(Array($0.utf8)).prefix(24)) }
    }
}

extension ServerName {
    /// The origin of a browser's push service.
    var webOrigin: Name? { if case .web(let origin) = self { origin } else { nil } }
}
