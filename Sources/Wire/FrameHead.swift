/// What an operator is told of a frame, whichever its direction and protocol version. Nothing of it is a secret.
package struct FrameHead: Sendable, Equatable {
    package let topic: String
    package let event: String
    /// See `Excerpt`.
    package let excerpt: String

    package init(topic: String, event: String, excerpt: String) {
        self.topic = topic
        self.event = event
        self.excerpt = excerpt
    }

    /// Reads a whole message, as it stands behind the header of its frame.
    package init(message: ArraySlice<UInt8>, isBinary: Bool) {
        if isBinary {
            self.init(binary: message)
            return
        }
        do {
            self.init(json: try JSON(parsing: message))
        } catch {
            self.init(topic: "", event: "malformed", excerpt: "no JSON from byte \(error.offset) on")
        }
    }

    /// Reads a frame that the hub made.
    package init(_ frame: Frame) {
        switch frame.opcode {
        case .text: self.init(message: frame.payload, isBinary: false)
        case .binary: self.init(message: frame.payload, isBinary: true)
        case .ping: self.init(topic: "", event: "ping", excerpt: "")
        case .close:
            let code = frame.payload.prefix(2).reduce(0) { $0 << 8 | Int($1) }
            let reason = String(decoding: frame.payload.dropFirst(2), as: UTF8.self)
            self.init(topic: "", event: "close", excerpt: "\(code) \(reason)")
        case nil: self.init(topic: "", event: "unknown", excerpt: "")
        }
    }

    private init(json: JSON) {
        let parts = json.elements(upTo: 5)
        let (topic, event, payload) =
            parts.count == 5 ? (parts[2], parts[3], parts[4]) : (json["topic"], json["event"], json["payload"])
        self.init(
            topic: Excerpt.redacted(topic?.string ?? ""), event: Excerpt.redacted(event?.string ?? ""),
            excerpt: payload.map { Excerpt.of($0) } ?? "")
    }

    /// Kind 3 has six length bytes behind the kind, kind 4 has four (see `ClientFrame` and `ServerFrame`).
    private init(binary: ArraySlice<UInt8>) {
        let bytes = Array(binary.prefix(7))
        let isClients = bytes.first == 3
        guard isClients && bytes.count == 7 || bytes.first == 4 && bytes.count >= 5 else {
            self.init(topic: "", event: "malformed", excerpt: "")
            return
        }
        let lengths = (isClients ? bytes[1...5] : [0, 0, bytes[1], bytes[2], bytes[3]]).map { Int($0) }
        var rest = binary.dropFirst(isClients ? 7 : 5)
        func field(_ length: Int) -> String {
            defer { rest = rest.dropFirst(length) }
            return Excerpt.redacted(String(decoding: rest.prefix(length), as: UTF8.self))
        }
        let fields = lengths.map(field)
        let isJSON = bytes[isClients ? 6 : 4] == UserBroadcast.Encoding.json.rawValue
        self.init(
            topic: fields[2], event: fields[3],
            excerpt: isJSON ? Self.excerpt(ofJSON: rest) : "\(rest.count) bytes that are not JSON")
    }

    /// Nobody has looked at it yet, so it may be anything.
    package static func excerpt(ofJSON bytes: ArraySlice<UInt8>) -> String {
        do { return Excerpt.of(try JSON(parsing: bytes)) } catch { return "\(bytes.count) bytes that are not JSON" }
    }
}
