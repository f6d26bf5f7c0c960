/// One message from a client, in either protocol version.
///
/// Refs stay the JSON text that the client wrote (`"7"`, `null`, from odd clients `7`), because the hub only sends them
/// back.
package struct ClientFrame: Sendable {
    /// The ref of the join that this incarnation of the channel began with; `null` if the client gave none.
    package let joinRef: JSON
    package let ref: JSON
    package let topic: String
    package let event: String
    package let body: Body
    /// The metadata of a binary frame, for the hub only: a JSON object. Nil if there is none, or if it is not an
    /// object.
    package let metadata: JSON?

    package enum Body: Sendable {
        case json(JSON)
        /// A binary frame of kind 3.
        case userBroadcast(UserBroadcast)
    }

    /// The reason why a frame was dropped; for logs and tests, not for clients.
    package enum Malformed: Error, Equatable {
        case json(offset: Int)
        case notAnObject
        case notAnArrayOfFive
        case missing(String)
        case wrongType(String)
        case unknownKind(UInt8)
        case truncated
        case notUTF8
        case binaryNeedsVersion2
    }

    /// Parses a text frame.
    package init(text: ArraySlice<UInt8>, version: ProtocolVersion) throws(Malformed) {
        let json: JSON
        do { json = try JSON(parsing: text) } catch { throw .json(offset: error.offset) }
        switch version {
        case .v1, .events: try self.init(object: json)
        case .v2: try self.init(array: json)
        }
    }

    /// `{"topic":…,"event":…,"payload":…,"ref":…,"join_ref":…}`; only `join_ref` may be absent.
    private init(object json: JSON) throws(Malformed) {
        guard json.kind == .object else { throw .notAnObject }
        var joinRef: JSON?
        var ref: JSON?
        var topic: JSON?
        var event: JSON?
        var payload: JSON?
        json.forEachMember { member in
            if member.isNamed("topic") { topic = member.value }
            if member.isNamed("event") { event = member.value }
            if member.isNamed("payload") { payload = member.value }
            if member.isNamed("ref") { ref = member.value }
            if member.isNamed("join_ref") { joinRef = member.value }
        }
        guard let topic else { throw .missing("topic") }
        guard let event else { throw .missing("event") }
        guard let payload else { throw .missing("payload") }
        guard let ref else { throw .missing("ref") }
        try self.init(joinRef: joinRef ?? .null, ref: ref, topic: topic, event: event, payload: payload)
    }

    /// `[join_ref, ref, topic, event, payload]`; elements after the fifth are ignored.
    private init(array json: JSON) throws(Malformed) {
        guard json.kind == .array else { throw .notAnArrayOfFive }
        let parts = json.elements(upTo: 5)
        guard parts.count == 5 else { throw .notAnArrayOfFive }
        try self.init(joinRef: parts[0], ref: parts[1], topic: parts[2], event: parts[3], payload: parts[4])
    }

    private init(joinRef: JSON, ref: JSON, topic: JSON, event: JSON, payload: JSON) throws(Malformed) {
        for (name, value) in [("join_ref", joinRef), ("ref", ref)] {
            switch value.kind {
            case .string, .number, .null: break
            default: throw .wrongType(name)
            }
        }
        guard let topicText = topic.string else { throw .wrongType("topic") }
        guard let eventText = event.string else { throw .wrongType("event") }
        self.joinRef = joinRef
        self.ref = ref
        self.topic = topicText
        self.event = eventText
        self.body = .json(payload)
        metadata = nil
    }

    /// Parses a binary frame of kind 3: six length bytes after the kind, then the fields, then the payload.
    package init(binary: ArraySlice<UInt8>, version: ProtocolVersion) throws(Malformed) {
        guard version == .v2 else { throw .binaryNeedsVersion2 }
        guard let kind = binary.first else { throw .truncated }
        guard kind == 3 else { throw .unknownKind(kind) }
        guard binary.count >= 7 else { throw .truncated }
        let start = binary.startIndex
        var at = start + 7
        func takeField(_ length: Int) throws(Malformed) -> ArraySlice<UInt8> {
            guard at + length <= binary.endIndex else { throw .truncated }
            defer { at += length }
            guard UTF8Scanner.isValid(binary[at..<(at + length)].span) else { throw .notUTF8 }
            return binary[at..<(at + length)]
        }
        let joinRef = try takeField(Int(binary[start + 1]))
        let ref = try takeField(Int(binary[start + 2]))
        let topic = try takeField(Int(binary[start + 3]))
        let event = try takeField(Int(binary[start + 4]))
        let metadata = try takeField(Int(binary[start + 5]))
        guard let encoding = UserBroadcast.Encoding(rawValue: binary[start + 6]) else { throw .wrongType("encoding") }

        func refJSON(_ bytes: ArraySlice<UInt8>) -> JSON {
            bytes.isEmpty ? .null : JSON(trusted: JSONString.encode(String(decoding: bytes, as: UTF8.self))[...])
        }
        self.joinRef = refJSON(joinRef)
        self.ref = refJSON(ref)
        self.topic = String(decoding: topic, as: UTF8.self)
        self.event = "broadcast"
        self.metadata = Self.parseObject(in: metadata)
        self.body = .userBroadcast(
            UserBroadcast(
                event: String(decoding: event, as: UTF8.self), encoding: encoding, payload: binary[at...], metadata: nil
            ))
    }

    private static func parseObject(in bytes: ArraySlice<UInt8>) -> JSON? {
        guard !bytes.isEmpty else { return nil }
        do {
            let json = try JSON(parsing: bytes)
            return json.kind == .object ? json : nil
        } catch { return nil }
    }
}

/// A client's message to the others in its channel, sent by a binary frame (kind 3 in, kind 4 out).
package struct UserBroadcast: Sendable {
    package let event: String
    package let encoding: Encoding
    /// The payload as sent; under `.json` it has not been validated yet.
    package let payload: ArraySlice<UInt8>
    /// A JSON object that accompanies the message (`{"id":…}` for messages from the database), or nil.
    package let metadata: [UInt8]?

    package enum Encoding: UInt8, Sendable {
        case raw = 0
        case json = 1
    }

    package init(event: String, encoding: Encoding, payload: ArraySlice<UInt8>, metadata: [UInt8]?) {
        self.event = event
        self.encoding = encoding
        self.payload = payload
        self.metadata = metadata
    }

    /// Returns the payload of the equivalent text frame, for clients that cannot receive a binary one:
    /// `{"event":…,"payload":…,"type":"broadcast"[,"meta":…]}`. Nil if text cannot carry the message: raw bytes, or a
    /// payload whose sender wrongly called it JSON.
    package func textPayload() -> [UInt8]? {
        guard encoding == .json else { return nil }
        do { return Self.textPayload(event, try JSON(parsing: payload), metadata) } catch { return nil }
    }

    /// Returns the same for a payload that is already parsed.
    package static func textPayload(_ event: String, _ payload: JSON, _ metadata: [UInt8]? = nil) -> [UInt8] {
        var out: [UInt8] = []
        out.reserveCapacity(event.utf8.count + payload.bytes.count + (metadata?.count ?? 0) + 64)
        out += "{\"event\":".utf8
        JSONString.encode(event, into: &out)
        out += ",\"payload\":".utf8
        out += payload.bytes
        out += ",\"type\":\"broadcast\"".utf8
        if let metadata {
            out += ",\"meta\":".utf8
            out += metadata
        }
        out += "}".utf8
        return out
    }
}

/// A client's protocol: the serializer chosen by `vsn` in the URL, or events in an HTTP response.
package enum ProtocolVersion: Sendable, Hashable {
    /// Phoenix's first serializer: JSON objects, text only.
    case v1
    /// Phoenix's second: JSON arrays of five, and binary frames of kinds 3 (in) and 4 (out).
    case v2
    /// Events in an HTTP response, which the client only reads.
    case events(EventFormat)

    /// Nil for a WebSocket.
    package var eventFormat: EventFormat? { if case .events(let format) = self { format } else { nil } }

    /// A name for people: the version of a serializer, or a format of events.
    package var name: String {
        switch self {
        case .v1: "1.0.0"
        case .v2: "2.0.0"
        case .events(let format): format.isLines ? "ndjson" : "sse"
        }
    }

    /// Parses `vsn` as the original does: absent means 1.0.0, otherwise `~> 1.0.0` or `~> 2.0.0`. Nil if neither
    /// matches.
    package init?(vsn: String?) {
        guard let vsn else {
            self = .v1
            return
        }
        let parts = vsn.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[1] == "0", !parts[2].isEmpty,
            parts[2].utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
        else { return nil }
        switch parts[0] {
        case "1": self = .v1
        case "2": self = .v2
        default: return nil
        }
    }
}
