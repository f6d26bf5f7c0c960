package import Wire

/// A message from this client to the hub, in protocol version 2 (wire-protocol A2).
package struct ClientMessage: Equatable, Sendable {
    package let joinRef: String?
    package let ref: String?
    package let topic: String
    package let event: String
    package let body: Body

    package enum Body: Equatable, Sendable {
        /// The text of a JSON object.
        case json([UInt8])
        /// A broadcast to the other members of the channel. If it is JSON, the payload is the text of an object.
        case broadcast(event: String, payload: [UInt8], isJSON: Bool)

        /// The length of the payload, in bytes.
        var count: Int {
            switch self {
            case .json(let payload), .broadcast(_, let payload, _): payload.count
            }
        }
    }

    package init(joinRef: String?, ref: String?, topic: String, event: String, body: Body) {
        self.joinRef = joinRef
        self.ref = ref
        self.topic = topic
        self.event = event
        self.body = body
    }

    /// The heartbeat, to which the hub replies.
    package static func heartbeat(_ ref: String) -> ClientMessage {
        ClientMessage(joinRef: nil, ref: ref, topic: "phoenix", event: "heartbeat", body: .json(Array("{}".utf8)))
    }

    /// The message as a frame. Broadcasts are binary frames of kind 3, as supabase-js sends them. If a field is too
    /// long for its length byte, the frame is text, which raw bytes cannot be.
    package var frame: WebSocketFrame {
        switch body {
        case .json(let payload): return .text(textFrame(event: event, payload))
        case .broadcast(let name, let payload, let isJSON):
            let fields = [joinRef ?? "", ref ?? "", topic, name]
            guard fields.allSatisfy({ $0.utf8.count <= 255 }) else {
                var out = Array("{\"type\":\"broadcast\",\"event\":".utf8)
                JSONString.encode(name, into: &out)
                out += ",\"payload\":".utf8
                out += payload
                out.append(UInt8(ascii: "}"))
                return .text(textFrame(event: "broadcast", out))
            }
            var out: [UInt8] = [3]
            out.reserveCapacity(7 + fields.reduce(0) { $0 + $1.utf8.count } + payload.count)
            out += fields.map { UInt8(truncatingIfNeeded: $0.utf8.count) }
            out += [0, isJSON ? 1 : 0]
            for field in fields { out += field.utf8 }
            out += payload
            return .binary(out)
        }
    }

    private func textFrame(event: String, _ payload: [UInt8]) -> [UInt8] {
        var out: [UInt8] = [UInt8(ascii: "[")]
        out.reserveCapacity(payload.count + topic.utf8.count + 48)
        for field in [joinRef, ref] {
            if let field { JSONString.encode(field, into: &out) } else { out += "null".utf8 }
            out.append(UInt8(ascii: ","))
        }
        for field in [topic, event] {
            JSONString.encode(field, into: &out)
            out.append(UInt8(ascii: ","))
        }
        out += payload
        out.append(UInt8(ascii: "]"))
        return out
    }
}

/// A message from the hub to this client, in protocol version 2 (wire-protocol A2).
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

    /// Parses a frame; nil if it does not belong to the protocol, in which case a client ignores it.
    package init?(_ frame: WebSocketFrame) {
        switch frame {
        case .text(let bytes):
            guard let json = JSON(bytes[...]) else { return nil }
            let parts = json.elements(upTo: 5)
            guard parts.count == 5, let topic = parts[2].string, let event = parts[3].string else { return nil }
            self.init(
                joinRef: Self.refText(parts[0]), ref: Self.refText(parts[1]), topic: topic, event: event,
                body: .json(parts[4]))
        case .binary(let bytes):
            guard let (topic, broadcast) = Self.parseBroadcast(bytes) else { return nil }
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

    /// The payload in the form of a text frame; nil for raw bytes, which text cannot carry.
    package var payload: JSON? {
        switch body {
        case .json(let json): json
        case .broadcast(let broadcast): broadcast.textPayload().map { JSON(trusted: $0[...]) }
        }
    }

    /// A ref as text. Refs are strings; a number is accepted as one.
    private static func refText(_ json: JSON) -> String? {
        json.isNull ? nil : json.string ?? json.description
    }

    /// Parses `4, T, E, M, encoding, topic, event, metadata, payload`, where T, E and M are the lengths of the three
    /// texts.
    private static func parseBroadcast(_ bytes: [UInt8]) -> (topic: String, UserBroadcast)? {
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

extension JSON {
    /// Parses a text from the network; nil if it is not JSON, in which case a client ignores it.
    init?(_ text: ArraySlice<UInt8>) {
        do { try self.init(parsing: text) } catch { return nil }
    }
}

/// Numbers the requests of a client. The numbers continue across reconnects, so that no reply ever fits two requests.
package struct Refs {
    private var last = 0

    package mutating func next() -> String {
        last += 1
        return String(last)
    }
}
