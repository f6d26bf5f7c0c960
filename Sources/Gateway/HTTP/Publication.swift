import HTTP
import Hub
import Wire

/// The messages of one HTTP request: published together, or not at all.
struct Publication {
    let messages: [Message]
    /// The bearer, by whose rights private channels are written to.
    let claims: Claims
    /// The private topics, without their prefix, that the policies have not been heard about.
    private(set) var undecided: Set<Name> = []
    private var denied: Set<Name> = []
    private var isUndecidable = false
    /// What the only message is to be kept as; nil where it is not, or may not be.
    private(set) var row: PersistedMessage?

    /// Private topics of one request: each is a question to the policies (as many as one socket may have channels).
    static let mostTopics = 100

    struct Message {
        let broadcast: BroadcastMessage
        let event: String
        let key: ChannelKey
    }

    init(messages: [Message], claims: Claims, row: PersistedMessage? = nil) {
        self.messages = messages
        self.row = row
        self.claims = claims
        for message in messages where message.key.isPrivate { undecided.insert(Name(message.key.name)) }
    }

    /// What is asked of each topic's policies.
    var right: AuthorizationQuestion.Right { .write(row == nil ? .broadcast : [.broadcast, .persistence]) }

    mutating func decide(_ topic: Name, _ outcome: AuthorizationOutcome) {
        guard undecided.remove(topic) != nil else { return }
        guard let allowed = outcome.extensions else {
            isUndecidable = true
            return
        }
        if !allowed.contains(.broadcast) { denied.insert(topic) }
        // What may be sent is sent, also where it may not be kept, as with the original.
        if !allowed.contains(.persistence) { row = nil }
    }

    private static let accepted = HTTPResponse(status: 202).readableAnywhere

    var isAllowed: Bool { undecided.isEmpty && denied.isEmpty && !isUndecidable }

    /// What the client is told once everything is decided. A denial before a doubt: it is the answer that will not change.
    var response: HTTPResponse {
        if isAllowed { return Self.accepted }
        guard !denied.isEmpty else { return .refusal(503, .databaseUnavailable) }
        let topics = denied.sorted().map(\.text)
        var body = Array("{\"message\":".utf8)
        JSONString.encode(Refusal.writeUnauthorized(topic: topics.joined(separator: ", ")).message, into: &body)
        body += ",\"topics\":[".utf8
        for (position, topic) in topics.enumerated() {
            if position > 0 { body.append(UInt8(ascii: ",")) }
            JSONString.encode(topic, into: &body)
        }
        return .json(403, body + Array("]}".utf8))
    }
}

extension HTTPResponse {
    /// As the original words errors of this API: under `message`.
    static func refusal(_ status: UInt32, _ refusal: Refusal) -> HTTPResponse { .message(status, refusal.message) }
}
