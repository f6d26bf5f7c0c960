/// How events reach a client that reads them from an HTTP answer.
package struct EventFormat: Sendable, Hashable {
    /// One JSON object a line (NDJSON) instead of server-sent events (WHATWG HTML, "Server-sent events").
    package let isLines: Bool
    /// Every frame is a chunk (RFC 9112, section 7.1); else the end of the connection is the end of the answer.
    package let isChunked: Bool

    package init(isLines: Bool, isChunked: Bool) {
        self.isLines = isLines
        self.isChunked = isChunked
    }

    package static let all = [false, true].flatMap { isLines in
        [false, true].map { EventFormat(isLines: isLines, isChunked: $0) }
    }
}

/// Builds events of channels for clients that read them from an HTTP answer.
///
/// An event is one JSON object, `{"topic":…,"event":…,"payload":…}`, with the topic as HTTP names it, without `realtime:`;
/// `type` is `broadcast` for what somebody sent. Its frame is shared by all who get the event, and where each of them is, is said by
/// a frame of its own before it (`position`): so a thousand readers cost one event and a thousand short lines.
package struct EventFrame {
    private let format: EventFormat
    /// As JSON text, quotes included; nil for what is about the connection.
    private let topic: [UInt8]?
    /// `position` goes before it.
    private let isBehindPosition: Bool

    /// What the hub says itself by these names nobody else can: a broadcast of such a name is an event `broadcast`, whose
    /// JSON has its own. `error` and `open` are the names of what a browser says.
    package static let reserved: Set<String> = [
        "broadcast", "closed", "connected", "end", "error", "open", "postgres_changes", "presence_diff",
        "presence_state",
        "system", "token_expired", "INSERT", "UPDATE", "DELETE",
    ]

    /// - Parameter topic: with its prefix, as JSON text.
    package init(_ format: EventFormat, topic: [UInt8]?, isBehindPosition: Bool = false) {
        self.format = format
        self.topic = topic
        self.isBehindPosition = isBehindPosition
    }

    // MARK: Events

    /// - Parameter payload: the text of a JSON object, in pieces.
    package func event(_ name: StaticString, payload: [ArraySlice<UInt8>], retry: Int? = nil) -> Frame {
        let name = Array(UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
        return frame(name, event: [UInt8(ascii: "\"")] + name + [UInt8(ascii: "\"")], retry: retry) { out in
            out += ",\"payload\":".utf8
            for piece in payload { out += piece }
        }
    }

    /// A broadcast, by the payload of the text frame that WebSockets get: what a client put in there beside its event and its
    /// payload is left out, so that nobody can say what its topic is.
    package func broadcast(_ payload: [UInt8]) -> Frame {
        let message = JSON(trusted: payload[...])
        return broadcast(event: message["event"]?.string) { out in
            out += ",\"payload\":".utf8
            out += (message["payload"] ?? message).bytes
            if let meta = message["meta"] {
                out += ",\"meta\":".utf8
                out += meta.bytes
            }
        }
    }

    /// A broadcast of bytes: `payload` is their base64 and `encoding` says so.
    package func broadcast(_ message: UserBroadcast) -> Frame {
        broadcast(event: message.event) { out in
            out += ",\"encoding\":\"base64\",\"payload\":\"".utf8
            Base64.append(message.payload, to: &out)
            out.append(UInt8(ascii: "\""))
            if let metadata = message.metadata {
                out += ",\"meta\":".utf8
                out += metadata
            }
        }
    }

    /// Its name is what an application listens for. One that would break a line, or pass for the hub's own, is `broadcast`.
    private func broadcast(event: String?, _ members: (inout [UInt8]) -> Void) -> Frame {
        let event = event ?? "broadcast"
        let isFree = !event.isEmpty && !Self.reserved.contains(event) && !event.utf8.contains { $0 < 0x20 }
        return frame(Array((isFree ? event : "broadcast").utf8), event: JSONString.encode(event)) { out in
            out += ",\"type\":\"broadcast\"".utf8
            members(&out)
        }
    }

    /// - Parameter event: as JSON text.
    private func frame(
        _ name: [UInt8], event: [UInt8], retry: Int? = nil, _ members: (inout [UInt8]) -> Void
    ) -> Frame {
        var out: [UInt8] = []
        if !format.isLines {
            if let retry { out += "retry: \(retry)\n".utf8 }
            out += "event: ".utf8
            out += name
            out += "\ndata: ".utf8
        }
        if !(format.isLines && isBehindPosition) { out.append(UInt8(ascii: "{")) }
        let start = out.count
        if let topic {
            out += "\"topic\":\"".utf8
            out += topic.dropFirst(Self.prefixLength + 1)
            out.append(UInt8(ascii: ","))
        }
        out += "\"event\":".utf8
        out += event
        members(&out)
        // Between JSON's tokens a client may have broken lines; within its strings none can be.
        for at in start..<out.count where out[at] == UInt8(ascii: "\n") || out[at] == UInt8(ascii: "\r") {
            out[at] = UInt8(ascii: " ")
        }
        out += format.isLines ? "}\n".utf8 : "}\n\n".utf8
        return Frame(body: out, isChunked: format.isChunked)
    }

    /// Of `realtime:`.
    private static let prefixLength = 9

    // MARK: Positions

    /// Where a client is that has the event behind this, which was made with `isBehindPosition`.
    ///
    /// - Parameter id: visible ASCII; nil where it is where it was. Then server-sent events need nothing.
    package static func position(_ id: String?, _ format: EventFormat) -> Frame? {
        switch (format.isLines, id) {
        case (true, let id?): Frame(body: Array("{\"id\":\"\(id)\",".utf8), isChunked: format.isChunked)
        case (true, nil): Frame(body: [UInt8(ascii: "{")], isChunked: format.isChunked)
        case (false, let id?): Frame(body: Array("id: \(id)\n".utf8), isChunked: format.isChunked)
        case (false, nil): nil
        }
    }

    /// Where a client is, with no event behind it: an empty block sets the id (WHATWG HTML, 9.2.6).
    package static func position(alone id: String, _ format: EventFormat) -> Frame {
        let text = format.isLines ? "{\"id\":\"\(id)\"}\n" : "id: \(id)\n\n"
        return Frame(body: Array(text.utf8), isChunked: format.isChunked)
    }

    /// Says nothing, so that nobody on the way takes the connection for dead.
    package static func comment(_ format: EventFormat) -> Frame {
        Frame(body: Array((format.isLines ? "\n" : ":\n\n").utf8), isChunked: format.isChunked)
    }

    /// After how many milliseconds a browser is to come back. Lines of JSON have no word for it.
    package static func retry(_ milliseconds: Int, _ format: EventFormat) -> Frame? {
        format.isLines ? nil : Frame(body: Array("retry: \(milliseconds)\n\n".utf8), isChunked: format.isChunked)
    }
}
