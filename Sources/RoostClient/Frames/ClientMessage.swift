import Wire

/// What this side sends, in protocol version 2 (wire-protocol A2).
package struct ClientMessage: Equatable, Sendable {
    package let joinRef: String?
    package let ref: String?
    package let topic: String
    package let event: String
    package let body: Body

    package enum Body: Equatable, Sendable {
        /// The text of a JSON object.
        case json([UInt8])
        /// A message for the others of the channel. `.json` bytes are the text of a JSON object.
        case broadcast(event: String, payload: [UInt8], isJSON: Bool)

        /// Bytes of the payload.
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

    package static func heartbeat(_ ref: String) -> ClientMessage {
        ClientMessage(joinRef: nil, ref: ref, topic: "phoenix", event: "heartbeat", body: .json(Array("{}".utf8)))
    }

    /// Broadcasts go as binary frames of kind 3, as supabase-js sends them; one whose fields are too long for the
    /// length bytes goes as text, which raw bytes cannot.
    package var frame: WebSocketFrame {
        switch body {
        case .json(let payload): return .text(text(event: event, payload))
        case .broadcast(let name, let payload, let isJSON):
            let fields = [joinRef ?? "", ref ?? "", topic, name]
            guard fields.allSatisfy({ $0.utf8.count <= 255 }) else {
                var out = Array("{\"type\":\"broadcast\",\"event\":".utf8)
                JSONString.encode(name, into: &out)
                out += ",\"payload\":".utf8
                out += payload
                out.append(UInt8(ascii: "}"))
                return .text(text(event: "broadcast", out))
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

    private func text(event: String, _ payload: [UInt8]) -> [UInt8] {
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
