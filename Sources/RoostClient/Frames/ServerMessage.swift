package import Wire

/// What the hub sent, in protocol version 2 (wire-protocol A2).
package struct ServerMessage: Sendable {
    package let joinRef: String?
    package let ref: String?
    package let topic: String
    package let event: String
    package let body: Body

    package enum Body: Sendable {
        case json(JSON)
        /// A binary frame of kind 4.
        case broadcast(UserBroadcast)
    }

    /// Nil for what is no frame of the protocol: whatever it is, it is not for us.
    package init?(_ frame: WebSocketFrame) {
        switch frame {
        case .text(let bytes):
            guard let json = Self.parse(bytes) else { return nil }
            let parts = json.elements(upTo: 5)
            guard parts.count == 5, let topic = parts[2].string, let event = parts[3].string else { return nil }
            self.init(
                joinRef: Self.ref(parts[0]), ref: Self.ref(parts[1]), topic: topic, event: event, body: .json(parts[4]))
        case .binary(let bytes):
            guard let (topic, broadcast) = Self.broadcast(bytes) else { return nil }
            self.init(joinRef: nil, ref: nil, topic: topic, event: "broadcast", body: .broadcast(broadcast))
        }
    }

    package init(joinRef: String?, ref: String?, topic: String, event: String, body: Body) {
        self.joinRef = joinRef
        self.ref = ref
        self.topic = topic
        self.event = event
        self.body = body
    }

    /// The payload as text has it; nil for raw bytes, which text cannot carry.
    package var payload: JSON? {
        switch body {
        case .json(let json): json
        case .broadcast(let broadcast): broadcast.textPayload().map { JSON(trusted: $0[...]) }
        }
    }

    private static func parse(_ bytes: [UInt8]) -> JSON? {
        do { return try JSON(parsing: bytes) } catch { return nil }
    }

    /// Refs are strings; a number is taken for the same.
    private static func ref(_ json: JSON) -> String? {
        json.isNull ? nil : json.string ?? json.description
    }

    /// `4, T, E, M, encoding, topic, event, metadata, payload`; the three are lengths.
    private static func broadcast(_ bytes: [UInt8]) -> (topic: String, UserBroadcast)? {
        guard bytes.count >= 5, bytes[0] == 4, let encoding = UserBroadcast.Encoding(rawValue: bytes[4]) else {
            return nil
        }
        let (topicEnd, eventEnd) = (5 + Int(bytes[1]), 5 + Int(bytes[1]) + Int(bytes[2]))
        let end = eventEnd + Int(bytes[3])
        guard bytes.count >= end else { return nil }
        let broadcast = UserBroadcast(
            event: String(decoding: bytes[topicEnd..<eventEnd], as: UTF8.self), encoding: encoding,
            payload: bytes[end...], metadata: end > eventEnd ? Array(bytes[eventEnd..<end]) : nil)
        return (String(decoding: bytes[5..<topicEnd], as: UTF8.self), broadcast)
    }
}
