/// Builds the hub's messages, in either protocol version.
///
/// Every `payload` given here is the text of a JSON object: clients break on anything else (wire-protocol A0.6).
package struct ServerFrame {
    private let version: ProtocolVersion
    /// The topic as JSON text, quotes included.
    private let topic: [UInt8]
    /// For readers of events, a position frame precedes it.
    private let isBehindPosition: Bool

    package init(_ version: ProtocolVersion, topic: [UInt8], isBehindPosition: Bool = false) {
        self.version = version
        self.topic = topic
        self.isBehindPosition = isBehindPosition
    }

    /// Builds the `phx_reply` to a request.
    package func reply(joinRef: JSON, ref: JSON, ok: Bool, response: [UInt8]) -> Frame {
        let head = Array((ok ? "{\"status\":\"ok\",\"response\":" : "{\"status\":\"error\",\"response\":").utf8)
        return envelope(joinRef: joinRef, ref: ref, event: "phx_reply", payload: [head[...], response[...], [0x7D]])
    }

    /// Builds an unsolicited message. `joinRef` and `ref` as in the table in wire-protocol A2.
    package func push(_ event: StaticString, joinRef: JSON = .null, ref: JSON = .null, payload: [UInt8]) -> Frame {
        envelope(joinRef: joinRef, ref: ref, event: event, payload: [payload[...]])
    }

    /// Builds an unsolicited message with its payload given in pieces, so that a large one is copied once.
    package func push(_ event: StaticString, payload: [ArraySlice<UInt8>]) -> Frame {
        envelope(joinRef: .null, ref: .null, event: event, payload: payload)
    }

    private func envelope(joinRef: JSON, ref: JSON, event: StaticString, payload: [ArraySlice<UInt8>]) -> Frame {
        let body = payload.reduce(0) { $0 + $1.count }
        let name = UnsafeBufferPointer(start: event.utf8Start, count: event.utf8CodeUnitCount)
        switch version {
        case .v1:
            let count = topic.count + name.count + body + ref.bytes.count + 39
            return Frame(.text, count: count) { out in
                out += "{\"topic\":".utf8
                out += topic
                out += ",\"event\":\"".utf8
                out += name
                out += "\",\"payload\":".utf8
                for piece in payload { out += piece }
                out += ",\"ref\":".utf8
                out += ref.bytes
                out.append(UInt8(ascii: "}"))
            }
        case .v2:
            let count = joinRef.bytes.count + ref.bytes.count + topic.count + name.count + body + 8
            return Frame(.text, count: count) { out in
                out.append(UInt8(ascii: "["))
                out += joinRef.bytes
                out.append(UInt8(ascii: ","))
                out += ref.bytes
                out.append(UInt8(ascii: ","))
                out += topic
                out += ",\"".utf8
                out += name
                out += "\",".utf8
                for piece in payload { out += piece }
                out.append(UInt8(ascii: "]"))
            }
        case .events(let format):
            let events = EventFrame(format, topic: topic, isBehindPosition: isBehindPosition)
            guard name.elementsEqual("broadcast".utf8) else { return events.event(event, payload: payload) }
            return events.broadcast(payload.count == 1 ? Array(payload[0]) : Array(payload.joined()))
        }
    }

    /// Builds a message of raw bytes for readers of events; nil for WebSockets.
    package func rawBroadcast(_ broadcast: UserBroadcast) -> Frame? {
        guard case .events(let format) = version else { return nil }
        return EventFrame(format, topic: topic, isBehindPosition: isBehindPosition).broadcast(broadcast)
    }

    /// Builds a binary frame of kind 4, for version 2. Nil if a field is longer than its length byte allows.
    package static func userBroadcast(_ broadcast: UserBroadcast, topic: String) -> Frame? {
        let metadata = broadcast.metadata ?? []
        let (t, e) = (topic.utf8.count, broadcast.event.utf8.count)
        guard t <= 255, e <= 255, metadata.count <= 255 else { return nil }
        return Frame(.binary, count: 5 + t + e + metadata.count + broadcast.payload.count) { out in
            out += [4, UInt8(t), UInt8(e), UInt8(metadata.count), broadcast.encoding.rawValue]
            out += topic.utf8
            out += broadcast.event.utf8
            out += metadata
            out += broadcast.payload
        }
    }
}
