import HTTP
import Hub
import Wire

/// Broadcasting over HTTP, for backends and for clients that have not joined (wire-protocol A11). A loop has one: an object,
/// because a value with all limits in it would be copied for every request.
final class BroadcastAPI {
    private let verifier: any TokenVerifier
    var limits: HubLimits

    init(verifier: any TokenVerifier, limits: HubLimits) {
        self.verifier = verifier
        self.limits = limits
    }

    enum Outcome {
        case refused(HTTPResponse)
        case tooLarge(HTTPResponse)
        /// As far as form goes; private topics take a right besides.
        case accepted(Publication)
    }

    /// What is said by a request's head alone.
    enum Judgement {
        case refused(HTTPResponse)
        /// To be heard, as what this bearer sends.
        case admitted(Sender)
    }

    /// Who sends, and where to.
    struct Sender {
        let claims: Claims
        let route: BroadcastRoute
    }

    /// Nil where the path is not one of ours.
    func judge(_ head: HTTPRequest, at now: HubTime) -> Judgement? {
        guard let route = BroadcastRoute(path: head.path) else { return nil }
        guard head.method == .post else {
            var response = HTTPResponse.message(405, "Use POST")
            response.headers = [("allow", "POST, OPTIONS")]
            return .refused(response)
        }
        guard let claims = claims(head, at: now) else { return .refused(.message(401, "Unauthorized")) }
        return .admitted(Sender(claims: claims, route: route))
    }

    /// A request that was admitted, with its body.
    func handle(_ request: HTTPRequest, of sender: Sender) -> Outcome {
        switch sender.route {
        case .list: batch(request, sender.claims)
        case .message(let topic, let event): single(request, topic: topic, event: event, sender.claims)
        }
    }

    private func claims(_ request: HTTPRequest, at now: HubTime) -> Claims? {
        guard let token = request.token else { return nil }
        do { return try verifier.verify(token, at: now) } catch { return nil }
    }

    // MARK: One message, the body being its payload

    private func single(_ request: HTTPRequest, topic: String, event: String, _ claims: Claims) -> Outcome {
        guard let isPrivate = Self.boolean(request.query["private"]) else { return .refused(Self.privateUnclear) }
        let key = ChannelKey(topic: ChannelKey.prefix + topic, isPrivate: isPrivate)
        if limits.privateOnly, !key.isPrivate { return .refused(.refusal(403, .privateOnly)) }
        if ActivitySummary.isReserved(event: event, topic: key.topic) {
            return .refused(.refusal(403, .summaryReserved))
        }
        guard request.body.count <= limits.payloadBytes else { return .tooLarge(tooLarge) }
        switch MediaType(of: request) {
        case .json:
            let json: JSON
            do { json = try JSON(parsing: request.body) } catch {
                return .refused(Self.invalid("payload", "is not valid JSON"))
            }
            guard json.kind == .object else { return .refused(Self.invalid("payload", "must be an object")) }
            let user = UserBroadcast(event: event, encoding: .json, payload: json.bytes, metadata: nil)
            return .accepted(Publication(messages: [(.text(user.textPayload() ?? []), key)], claims: claims))
        case .octets:
            guard key.topic.utf8.count <= 255, event.utf8.count <= 255 else {
                return .refused(Self.invalid("topic", "and event may have 255 bytes each"))
            }
            let user = UserBroadcast(event: event, encoding: .raw, payload: request.body[...], metadata: nil)
            return .accepted(Publication(messages: [(.user(user), key)], claims: claims))
        case nil:
            let text = "Unsupported Media Type. Use application/json or application/octet-stream"
            return .refused(HTTPResponse.error(415, text))
        }
    }

    // MARK: {"messages":[{"topic":…,"event":…,"payload":{…},"private":false}]}

    private func batch(_ request: HTTPRequest, _ claims: Claims) -> Outcome {
        let json: JSON
        do { json = try JSON(parsing: request.body) } catch {
            return .refused(Self.invalid("messages", "is not valid JSON"))
        }
        guard let list = json["messages"], list.kind == .array else {
            return .refused(Self.invalid("messages", "can't be blank"))
        }
        var messages: [(broadcast: Broadcast, key: ChannelKey)] = []
        for message in list.elements {
            guard let topic = message["topic"]?.string, !topic.isEmpty else {
                return .refused(Self.invalid("messages", "topic can't be blank"))
            }
            guard let event = message["event"]?.string, !event.isEmpty else {
                return .refused(Self.invalid("messages", "event can't be blank"))
            }
            guard let payload = message["payload"], payload.kind == .object else {
                return .refused(Self.invalid("messages", "payload must be an object"))
            }
            guard payload.bytes.count <= limits.payloadBytes else { return .tooLarge(tooLarge) }
            guard let isPrivate = Self.boolean(message["private"]) else { return .refused(Self.privateUnclear) }
            if limits.privateOnly, !isPrivate { return .refused(.refusal(403, .privateOnly)) }
            let metadata = message["id"]?.string.map { Array("{\"id\":".utf8) + JSONString.encode($0) + [0x7D] }
            let user = UserBroadcast(event: event, encoding: .json, payload: payload.bytes, metadata: metadata)
            let key = ChannelKey(topic: ChannelKey.prefix + topic, isPrivate: isPrivate)
            if ActivitySummary.isReserved(event: event, topic: key.topic) {
                return .refused(.refusal(403, .summaryReserved))
            }
            messages.append((.text(user.textPayload() ?? []), key))
        }
        let publication = Publication(messages: messages, claims: claims)
        guard publication.undecided.count <= Publication.mostTopics else {
            return .refused(Self.invalid("messages", "can have at most \(Publication.mostTopics) private topics"))
        }
        return .accepted(publication)
    }

    /// As Ecto casts a boolean, by which the original reads both forms: nil where it is none, because a message must not become
    /// public by a slip of the pen.
    private static func boolean(_ text: String?) -> Bool? {
        switch text {
        case nil, "false", "0": false
        case "true", "1": true
        default: nil
        }
    }

    private static func boolean(_ json: JSON?) -> Bool? {
        guard let json, json.kind != .null else { return false }
        return json.bool ?? json.string.flatMap { boolean($0) }
    }

    private static var privateUnclear: HTTPResponse { invalid("private", "must be true or false") }

    /// Begins with the original's words.
    private var tooLarge: HTTPResponse {
        let text = "Payload size exceeds tenant limit: it may have \(limits.payloadBytes) bytes (limits.payload_bytes)"
        return .json(
            422, Array("{\"message\":\"\(text)\",\"errors\":{\"messages\":[{\"payload\":[\"\(text)\"]}]}}".utf8))
    }

    private static func invalid(_ field: String, _ what: String) -> HTTPResponse {
        var body = Array("{\"message\":".utf8)
        // Clients show this, and not what stands under `errors` as the original has it.
        JSONString.encode("\(field) \(what)", into: &body)
        body += ",\"errors\":{\"\(field)\":[".utf8
        JSONString.encode(what, into: &body)
        return .json(422, body + Array("]}}".utf8))
    }
}

/// Where a request goes that broadcasts, by its path: bytes, because the library's searches in strings take 5 µs for it.
enum BroadcastRoute: Equatable {
    /// Several messages, which the body names.
    case list
    /// One, whose payload is the body. A topic may have slashes of its own.
    case message(topic: String, event: String)

    private static let prefixes: [StaticString] = ["/realtime/v1/api/broadcast", "/api/broadcast"]
    private static let marker: StaticString = "/events/"

    /// Nil where the path is none of these.
    init?(path: String) {
        var path = path
        guard let route = path.withUTF8({ Self.route($0) }) else { return nil }
        self = route
    }

    private static func route(_ path: UnsafeBufferPointer<UInt8>) -> BroadcastRoute? {
        for prefix in prefixes where begins(path[...], with: prefix) {
            let rest = path[prefix.utf8CodeUnitCount...]
            guard let first = rest.first else { return .list }
            guard first == UInt8(ascii: "/") else { return nil }
            // Without that slash: it may be the marker's, where there is no topic.
            guard let (topic, event) = split(rest.dropFirst()), !topic.isEmpty, !event.isEmpty else { return nil }
            return .message(
                topic: String(decoding: topic, as: UTF8.self), event: String(decoding: event, as: UTF8.self))
        }
        return nil
    }

    private static func begins(_ bytes: Slice<UnsafeBufferPointer<UInt8>>, with text: StaticString) -> Bool {
        bytes.count >= text.utf8CodeUnitCount
            && text.withUTF8Buffer { text in
                for at in 0..<text.count where bytes[bytes.startIndex + at] != text[at] { return false }
                return true
            }
    }

    /// At the last marker.
    private static func split(
        _ names: Slice<UnsafeBufferPointer<UInt8>>
    ) -> (topic: Slice<UnsafeBufferPointer<UInt8>>, event: Slice<UnsafeBufferPointer<UInt8>>)? {
        for slash in names.indices.reversed()
        where names[slash] == UInt8(ascii: "/") && begins(names[slash...], with: marker) {
            return (names[..<slash], names[(slash + marker.utf8CodeUnitCount)...])
        }
        return nil
    }
}

/// What the body of a broadcast may be.
enum MediaType {
    case json, octets

    /// JSON where the request says nothing; nil for what is not taken. Names are in whatever case, and parameters do not
    /// count (RFC 9110, section 8.3.1).
    init?(of request: HTTPRequest) {
        guard let text = request.contentType else {
            self = .json
            return
        }
        // As nearly all write it.
        guard text != "application/json" else {
            self = .json
            return
        }
        let name = text.utf8.prefix { $0 != UInt8(ascii: ";") }
        if Self.isEqual(name, "application/json") {
            self = .json
        } else if Self.isEqual(name, "application/octet-stream") {
            self = .octets
        } else {
            return nil
        }
    }

    private static func isEqual(_ name: Substring.UTF8View, _ type: StaticString) -> Bool {
        type.withUTF8Buffer { type in
            name.elementsEqual(type) { byte, other in
                byte == other || byte &- UInt8(ascii: "A") < 26 && byte | 0x20 == other
            }
        }
    }
}
