import HTTP
import Hub
import Wire

/// Broadcasting over HTTP, for backends and for clients that have not joined (wire-protocol A11). Each loop has one: an
/// object, because a value containing all limits would be copied for every request.
final class BroadcastAPI {
    private let verifier: any TokenVerifier
    private let servesStreams: Bool
    var limits: HubLimits

    init(verifier: any TokenVerifier, limits: HubLimits, servesStreams: Bool) {
        self.verifier = verifier
        self.servesStreams = servesStreams
        self.limits = limits
    }

    enum Outcome {
        case refused(HTTPResponse)
        case tooLarge(HTTPResponse)
        /// The form is valid; private topics also need a right.
        case accepted(Publication)
    }

    /// The verdict on a request by its head alone.
    enum Judgement {
        case refused(HTTPResponse)
        /// The body will be read, as a broadcast by this sender.
        case admitted(Sender)
    }

    /// The sender and destination of a broadcast, and what the head says about the body.
    struct Sender {
        let claims: Claims
        let route: BroadcastRoute
        /// The query's `private`.
        let privacy: String?
        /// The query's `persist` (supabase/realtime PR 2022).
        let persistence: String?
        /// Nil for an unsupported type.
        let mediaType: MediaType?
    }

    /// Nil if the path is not one of this API's.
    func judge(_ head: HTTPHead, at now: HubTime) -> Judgement? {
        guard let route = BroadcastRoute(path: head.path) else { return nil }
        guard head.method == "POST" else {
            var response = HTTPResponse.message(405, "Use POST")
            response.headers = [("allow", "POST, OPTIONS")]
            return .refused(response)
        }
        let query = head.allQuery
        guard let claims = claims(head.callToken(query: query), at: now) else {
            return .refused(.message(401, "Unauthorized"))
        }
        return .admitted(
            Sender(
                claims: claims, route: route, privacy: query["private"], persistence: query["persist"],
                mediaType: MediaType(head.field("content-type"))))
    }

    /// Handles an admitted request, with its body.
    func handle(_ body: [UInt8], of sender: Sender) -> Outcome {
        switch sender.route {
        case .list: batch(body, sender.claims)
        case .message(let topic, let event): single(body, topic: topic, event: event, sender)
        }
    }

    private func claims(_ token: String?, at now: HubTime) -> Claims? {
        guard let token else { return nil }
        do { return try verifier.verifyToken(token, at: now) } catch { return nil }
    }

    // MARK: One message, the body being its payload

    private func single(_ body: [UInt8], topic: String, event: String, _ sender: Sender) -> Outcome {
        guard let isPrivate = Self.boolean(sender.privacy) else { return .refused(Self.privateUnclear) }
        let key = ChannelKey(topic: ChannelKey.prefix + topic, isPrivate: isPrivate)
        if limits.privateOnly, !key.isPrivate { return .refused(.refusal(403, .privateOnly)) }
        guard let isKept = Self.boolean(sender.persistence) else {
            return .refused(Self.invalid("persist", "must be true or false"))
        }
        guard key.isPrivate || !isKept else {
            return .refused(Self.invalid("persist", "is for private messages: add private=true"))
        }
        if let refusal = reservation(of: event, topic: key.topic) { return .refused(.refusal(403, refusal)) }
        guard body.count <= limits.payloadBytes else { return .tooLarge(tooLarge) }
        switch sender.mediaType {
        case .json:
            let json: JSON
            do { json = try JSON(parsing: body) } catch {
                return .refused(Self.invalid("payload", "is not valid JSON"))
            }
            guard json.kind == .object else { return .refused(Self.invalid("payload", "must be an object")) }
            let user = UserBroadcast(event: event, encoding: .json, payload: json.bytes, metadata: nil)
            let message = BroadcastMessage.text(UserBroadcast.textPayload(event, json))
            return accepted(message, user, key, sender.claims, isKept: isKept)
        case .octets:
            guard key.topic.utf8.count <= 255, event.utf8.count <= 255 else {
                return .refused(Self.invalid("topic", "and event may have 255 bytes each"))
            }
            let user = UserBroadcast(event: event, encoding: .raw, payload: body[...], metadata: nil)
            return accepted(.user(user), user, key, sender.claims, isKept: isKept)
        case nil:
            let text = "Unsupported Media Type. Use application/json or application/octet-stream"
            return .refused(HTTPResponse.error(415, text))
        }
    }

    /// The refusal of an event that only the hub may send on this topic.
    private func reservation(of event: String, topic: String) -> Refusal? {
        if ActivitySummary.isReserved(event: event, topic: topic) { return .summaryReserved }
        return servesStreams && ChannelStream.isReserved(event: event, topic: topic) ? .stream(.reserved) : nil
    }

    private func accepted(
        _ broadcast: BroadcastMessage, _ user: UserBroadcast, _ key: ChannelKey, _ claims: Claims, isKept: Bool
    ) -> Outcome {
        let row = isKept ? PersistedMessage(user, in: key, PersistRequest(), by: claims.subject) : nil
        let message = Publication.Message(broadcast: broadcast, event: user.event, key: key)
        return .accepted(Publication(messages: [message], claims: claims, row: row))
    }

    // MARK: {"messages":[{"topic":…,"event":…,"payload":{…},"private":false}]}

    /// One message of the list, parsed in one pass. If a member is repeated, the last one counts.
    private struct Entry {
        private(set) var topic, event, payload, isPrivate, id: JSON?

        init(_ message: JSON) {
            message.forEachMember { member in
                if member.isNamed("payload") {
                    payload = member.value
                } else if member.isNamed("topic") {
                    topic = member.value
                } else if member.isNamed("event") {
                    event = member.value
                } else if member.isNamed("private") {
                    isPrivate = member.value
                } else if member.isNamed("id") {
                    id = member.value
                }
            }
        }
    }

    private func batch(_ body: [UInt8], _ claims: Claims) -> Outcome {
        let json: JSON
        do { json = try JSON(parsing: body) } catch {
            return .refused(Self.invalid("messages", "is not valid JSON"))
        }
        guard let list = json["messages"], list.kind == .array else {
            return .refused(Self.invalid("messages", "can't be blank"))
        }
        var messages: [Publication.Message] = []
        for element in list.elements {
            let message = Entry(element)
            guard let topic = message.topic?.string, !topic.isEmpty else {
                return .refused(Self.invalid("messages", "topic can't be blank"))
            }
            guard let event = message.event?.string, !event.isEmpty else {
                return .refused(Self.invalid("messages", "event can't be blank"))
            }
            guard let payload = message.payload, payload.kind == .object else {
                return .refused(Self.invalid("messages", "payload must be an object"))
            }
            guard payload.bytes.count <= limits.payloadBytes else { return .tooLarge(tooLarge) }
            guard let isPrivate = Self.boolean(message.isPrivate) else { return .refused(Self.privateUnclear) }
            if limits.privateOnly, !isPrivate { return .refused(.refusal(403, .privateOnly)) }
            let metadata = message.id?.string.map { Array("{\"id\":".utf8) + JSONString.encode($0) + [0x7D] }
            let key = ChannelKey(topic: ChannelKey.prefix + topic, isPrivate: isPrivate)
            if let refusal = reservation(of: event, topic: key.topic) { return .refused(.refusal(403, refusal)) }
            let text = UserBroadcast.textPayload(event, payload, metadata)
            messages.append(.init(broadcast: .text(text), event: event, key: key))
        }
        let publication = Publication(messages: messages, claims: claims)
        guard publication.undecided.count <= Publication.mostTopics else {
            return .refused(Self.invalid("messages", "can have at most \(Publication.mostTopics) private topics"))
        }
        return .accepted(publication)
    }

    /// Casts a boolean as Ecto does, by which the original reads both forms. Nil for anything else, because a typing
    /// error must not make a message public.
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
        // Clients show this, not the original's text under `errors`.
        JSONString.encode("\(field) \(what)", into: &body)
        body += ",\"errors\":{\"\(field)\":[".utf8
        JSONString.encode(what, into: &body)
        return .json(422, body + Array("]}}".utf8))
    }
}

/// The destination of a broadcast request, by its path. Compares bytes, because the standard library's string searches
/// take 5 µs for this.
enum BroadcastRoute: Equatable {
    /// Several messages, which the body lists.
    case list
    /// One message, whose payload is the body. A topic may contain slashes.
    case message(topic: String, event: String)

    private static let prefixes: [StaticString] = ["/realtime/v1/api/broadcast", "/api/broadcast"]
    private static let marker: StaticString = "/events/"

    /// Nil if the path is neither.
    init?(path: String) {
        var path = path
        guard let route = path.withUTF8({ Self.route($0) }) else { return nil }
        self = route
    }

    private static func route(_ path: UnsafeBufferPointer<UInt8>) -> BroadcastRoute? {
        for prefix in prefixes where has(prefix, in: path, at: 0) {
            // After the slash, which is the marker's own if there is no topic.
            let start = prefix.utf8CodeUnitCount + 1
            guard path.count >= start else { return .list }
            guard path[start - 1] == UInt8(ascii: "/") else { return nil }
            return message(path, from: start)
        }
        return nil
    }

    private static func has(_ text: StaticString, in path: UnsafeBufferPointer<UInt8>, at place: Int) -> Bool {
        guard path.count - place >= text.utf8CodeUnitCount else { return false }
        for at in 0..<text.utf8CodeUnitCount where path[place + at] != text.utf8Start[at] { return false }
        return true
    }

    /// Splits the path at the last marker.
    private static func message(_ path: UnsafeBufferPointer<UInt8>, from start: Int) -> BroadcastRoute? {
        var slash = path.count - marker.utf8CodeUnitCount
        while slash > start, !has(marker, in: path, at: slash) { slash -= 1 }
        let event = slash + marker.utf8CodeUnitCount
        guard slash > start, event < path.count else { return nil }
        return .message(topic: text(path[start..<slash]), event: text(path[event...]))
    }

    private static func text(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) -> String {
        String(decoding: UnsafeBufferPointer(rebasing: bytes), as: UTF8.self)
    }
}

/// The kind of a broadcast's body.
enum MediaType {
    case json, octets

    /// JSON if the request has no content type; bytes for any type that is neither text nor a form; nil for unsupported
    /// types. Names are case-insensitive, and parameters are ignored (RFC 9110, section 8.3.1).
    init?(_ contentType: String?) {
        guard let text = contentType else {
            self = .json
            return
        }
        // The usual spelling.
        guard text != "application/json" else {
            self = .json
            return
        }
        let name = text.utf8.prefix { $0 != UInt8(ascii: ";") }
        if Self.isEqual(name, "application/json") {
            self = .json
        } else if Self.isOfBytes(name) {
            self = .octets
        } else {
            return nil
        }
    }

    /// Text, other JSON and forms do not count as bytes: as a binary payload they would reach members in a form that
    /// their sender did not mean.
    private static func isOfBytes(_ name: Substring.UTF8View) -> Bool {
        let name = name.split(separator: UInt8(ascii: " "))
        guard name.count == 1, let slash = name[0].firstIndex(of: UInt8(ascii: "/")) else { return false }
        let (kind, subtype) = (name[0][..<slash], name[0][slash...].dropFirst())
        guard kind.allSatisfy(isTokenByte), subtype.allSatisfy(isTokenByte), !kind.isEmpty, !subtype.isEmpty,
            !isEqual(kind, "text"), !isEqual(kind, "multipart"), !isEqual(subtype, "x-www-form-urlencoded")
        else { return false }
        return !isEqual(subtype.suffix(5), "+json")
    }

    /// Whether the byte may be part of a token (RFC 9110, section 5.6.2).
    private static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"):
            true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
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
