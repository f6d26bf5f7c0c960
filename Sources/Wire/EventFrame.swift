/// The format in which a client reads events from an HTTP response.
package struct EventFormat: Sendable, Hashable {
    /// One JSON object per line (NDJSON) instead of server-sent events (WHATWG HTML, "Server-sent events").
    package let isLines: Bool
    /// Every frame is a chunk (RFC 9112, section 7.1); otherwise the response ends with the connection.
    package let isChunked: Bool

    package init(isLines: Bool, isChunked: Bool) {
        self.isLines = isLines
        self.isChunked = isChunked
    }

    package static let all = [false, true].flatMap { isLines in
        [false, true].map { EventFormat(isLines: isLines, isChunked: $0) }
    }
}

/// Builds events of channels for clients that read them from an HTTP response.
///
/// An event is one JSON object, `{"topic":…,"event":…,"payload":…}`, with the topic as used over HTTP, without
/// `realtime:`; `type` is `broadcast` for clients' messages. All readers of an event share its frame, and each reader's
/// position comes in a frame of its own before it (`position`): a thousand readers cost one event and a thousand short
/// lines.
package struct EventFrame {
    private let format: EventFormat
    /// As JSON text, quotes included; nil for events about the connection.
    private let topic: [UInt8]?
    /// A `position` frame precedes it.
    private let isBehindPosition: Bool

    /// Names that only the hub itself may use: a broadcast with such a name becomes an event `broadcast`, whose JSON
    /// has the original name. Browsers use `error` and `open` for events of their own.
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

    /// - Parameter payload: a JSON object as text, in pieces.
    package func event(_ name: StaticString, payload: [ArraySlice<UInt8>], retry: Int? = nil) -> Frame {
        let name = Array(UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
        return frame(name, event: [UInt8(ascii: "\"")] + name + [UInt8(ascii: "\"")], retry: retry) { out in
            out += ",\"payload\":".utf8
            for piece in payload { out += piece }
        }
    }

    /// Builds the event of a broadcast from the payload of its text frame for WebSockets: members that a client added
    /// beside its event and its payload are omitted, so that no client can set the topic.
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

    /// Builds the event of a binary broadcast: `payload` is base64, and `encoding` says so.
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

    /// The event's name is the one that an application listens for. A name that would break a line, or imitate the
    /// hub's own, becomes `broadcast`.
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
        // A client may have put line breaks between JSON's tokens; its strings cannot contain any.
        for at in start..<out.count where out[at] == UInt8(ascii: "\n") || out[at] == UInt8(ascii: "\r") {
            out[at] = UInt8(ascii: " ")
        }
        out += format.isLines ? "}\n".utf8 : "}\n\n".utf8
        return Frame(body: out, isChunked: format.isChunked)
    }

    /// The length of `realtime:`.
    private static let prefixLength = 9

    // MARK: Positions

    /// Returns the frame with a reader's position, to be followed by an event made with `isBehindPosition`.
    ///
    /// - Parameter id: visible ASCII; nil if the position is unchanged, for which server-sent events need no frame.
    package static func position(_ id: String?, _ format: EventFormat) -> Frame? {
        switch (format.isLines, id) {
        case (true, let id?): Frame(body: Array("{\"id\":\"\(id)\",".utf8), isChunked: format.isChunked)
        case (true, nil): Frame(body: [UInt8(ascii: "{")], isChunked: format.isChunked)
        case (false, let id?): Frame(body: Array("id: \(id)\n".utf8), isChunked: format.isChunked)
        case (false, nil): nil
        }
    }

    /// Returns a position without a following event: an empty block sets the ID (WHATWG HTML, 9.2.6).
    package static func position(alone id: String, _ format: EventFormat) -> Frame {
        let text = format.isLines ? "{\"id\":\"\(id)\"}\n" : "id: \(id)\n\n"
        return Frame(body: Array(text.utf8), isChunked: format.isChunked)
    }

    /// Returns a frame without content, which keeps intermediaries from considering the connection dead.
    package static func comment(_ format: EventFormat) -> Frame {
        Frame(body: Array((format.isLines ? "\n" : ":\n\n").utf8), isChunked: format.isChunked)
    }

    /// Returns the delay in milliseconds after which a browser should reconnect. NDJSON cannot express it.
    package static func retry(_ milliseconds: Int, _ format: EventFormat) -> Frame? {
        format.isLines ? nil : Frame(body: Array("retry: \(milliseconds)\n\n".utf8), isChunked: format.isChunked)
    }
}
