import Hub
import Wire

/// Broadcasting over HTTP, for backends and for clients that have not joined (wire-protocol A11).
struct BroadcastAPI {
    let verifier: any TokenVerifier
    var limits: HubLimits

    enum Outcome {
        case refused(HTTPResponse)
        case tooLarge(HTTPResponse)
        /// As far as form goes; private topics take a right besides.
        case accepted(Publication)
    }

    private static let prefixes = ["/api/broadcast", "/realtime/v1/api/broadcast"]

    /// Nil where the path is not one of ours.
    func handle(_ request: HTTPRequest, at now: HubTime) -> Outcome? {
        for prefix in Self.prefixes where request.path == prefix || request.path.hasPrefix(prefix + "/") {
            let rest = request.path.dropFirst(prefix.count)
            guard rest.isEmpty || Self.topicAndEvent(rest) != nil else { return nil }
            guard request.method == .post else {
                return request.method == .options ? nil : .refused(.message(405, "Use POST"))
            }
            guard let claims = claims(request, at: now) else {
                return .refused(.message(401, "Unauthorized"))
            }
            if let (topic, event) = Self.topicAndEvent(rest) {
                return single(request, topic: topic, event: event, claims)
            }
            return batch(request, claims)
        }
        return nil
    }

    private func claims(_ request: HTTPRequest, at now: HubTime) -> Claims? {
        guard let token = request.token else { return nil }
        do { return try verifier.verify(token, at: now) } catch { return nil }
    }

    /// `/{topic}/events/{event}`; a topic may have slashes of its own.
    private static func topicAndEvent(_ rest: Substring) -> (topic: String, event: String)? {
        let marker = "/events/"
        guard rest.hasPrefix("/"), let range = rest.lastRange(of: marker) else { return nil }
        let topic = rest[rest.index(after: rest.startIndex)..<range.lowerBound]
        let event = rest[range.upperBound...]
        return topic.isEmpty || event.isEmpty ? nil : (String(topic), String(event))
    }

    // MARK: One message, the body being its payload

    private func single(_ request: HTTPRequest, topic: String, event: String, _ claims: Claims) -> Outcome {
        let key = ChannelKey(topic: ChannelKey.prefix + topic, isPrivate: request.query["private"] == "true")
        if limits.privateOnly, !key.isPrivate { return .refused(.refusal(403, .privateOnly)) }
        if ActivitySummary.isReserved(event: event, topic: key.topic) {
            return .refused(.refusal(403, .summaryReserved))
        }
        guard request.body.count <= limits.payloadBytes else { return .tooLarge(tooLarge) }
        switch request.contentType.map({ String($0.prefix { $0 != ";" }).lowercased() }) ?? "application/json" {
        case "application/json":
            let json: JSON
            do { json = try JSON(parsing: request.body) } catch {
                return .refused(Self.invalid("payload", "is not valid JSON"))
            }
            guard json.kind == .object else { return .refused(Self.invalid("payload", "must be an object")) }
            let user = UserBroadcast(event: event, encoding: .json, payload: json.bytes, metadata: nil)
            return .accepted(Publication(messages: [(.text(user.textPayload() ?? []), key)], claims: claims))
        case "application/octet-stream":
            guard key.topic.utf8.count <= 255, event.utf8.count <= 255 else {
                return .refused(Self.invalid("topic", "and event may have 255 bytes each"))
            }
            let user = UserBroadcast(event: event, encoding: .raw, payload: request.body[...], metadata: nil)
            return .accepted(Publication(messages: [(.user(user), key)], claims: claims))
        default:
            let text = "Unsupported Media Type. Use application/json or application/octet-stream"
            return .refused(Door.error(415, text))
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
            let isPrivate = message["private"]?.bool ?? false
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

    /// Begins with the original's words.
    private var tooLarge: HTTPResponse {
        let text = "Payload size exceeds tenant limit: it may have \(limits.payloadBytes) bytes (limits.payload_bytes)"
        return .json(422, Array("{\"errors\":{\"messages\":[{\"payload\":[\"\(text)\"]}]}}".utf8))
    }

    private static func invalid(_ field: String, _ what: String) -> HTTPResponse {
        .json(422, Array("{\"errors\":{\"\(field)\":[".utf8) + JSONString.encode(what) + Array("]}}".utf8))
    }
}

extension Substring {
    fileprivate func lastRange(of marker: String) -> Range<Index>? {
        var found: Range<Index>?
        var start = startIndex
        while let range = self[start...].firstRange(of: marker) {
            found = range
            start = index(after: range.lowerBound)
        }
        return found
    }
}
