import HTTP
import Hub
import Wire

/// The messages of one HTTP request: published together, or not at all.
struct Publication {
    let messages: [Message]
    /// The claims of the sender, whose rights decide about private channels.
    let claims: Claims
    /// The private topics, without their prefix, that the policies have not decided yet.
    private(set) var undecided: Set<Name> = []
    private var denied: Set<Name> = []
    private var isUndecidable = false
    /// The row for a single message that is to be stored; nil if it is not, or may not be.
    private(set) var row: PersistedMessage?

    /// The most private topics per request: each is a question to the policies (the limit on a socket's channels is the
    /// same).
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

    /// The right to ask each topic's policies about.
    var right: AuthorizationQuestion.Right { .write(row == nil ? .broadcast : [.broadcast, .persistence]) }

    mutating func decide(_ topic: Name, _ outcome: AuthorizationOutcome) {
        guard undecided.remove(topic) != nil else { return }
        guard let allowed = outcome.extensions else {
            isUndecidable = true
            return
        }
        if !allowed.contains(.broadcast) { denied.insert(topic) }
        // As in the original, a message that may be sent is sent even if it may not be stored.
        if !allowed.contains(.persistence) { row = nil }
    }

    private static let accepted = HTTPResponse(status: 202).readableAnywhere

    var isAllowed: Bool { undecided.isEmpty && denied.isEmpty && !isUndecidable }

    /// The response once everything is decided. A denial takes precedence over an undecided topic, because it will not
    /// change.
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
    /// An error of this API in the original's form, under `message`.
    static func refusal(_ status: UInt32, _ refusal: Refusal) -> HTTPResponse { .message(status, refusal.message) }
}
