/// The beginning of a message, for an operator to read: short, and without credentials.
///
/// It hides the values of keys that name secrets, and anything that looks like a JWT (RFC 7515: its header is a JSON
/// object, so in base64 it begins with `eyJ`) or like a key of a Supabase project (`sb_…`), wherever it occurs.
package struct Excerpt {
    /// Replaces a secret.
    package static let hidden = "***"

    private var out: [UInt8] = []
    private let limit: Int

    /// Returns a value's text, cut to this many bytes.
    package static func makeText(_ json: JSON, bytes limit: Int = 200) -> String {
        var excerpt = Excerpt(limit: limit)
        excerpt.append(json)
        return excerpt.text
    }

    private init(limit: Int) {
        self.limit = limit
    }

    private var isFull: Bool { out.count > limit }

    /// The output, cut between characters.
    private var text: String {
        guard isFull else { return String(decoding: out, as: UTF8.self) }
        var end = limit
        while end > 0, out[end] & 0xC0 == 0x80 { end -= 1 }
        return String(decoding: out[..<end], as: UTF8.self) + "…"
    }

    private mutating func append(_ json: JSON) {
        guard !isFull else { return }
        switch json.kind {
        case .object: append(members: json)
        case .array: append(elements: json)
        case .string: append(string: json)
        case .number, .bool, .null: out += json.bytes.prefix(limit + 1)
        }
    }

    private mutating func append(members json: JSON) {
        var isFirst = true
        out.append(UInt8(ascii: "{"))
        json.forEachMember { member in
            guard !isFull else { return }
            if !isFirst { out.append(UInt8(ascii: ",")) }
            isFirst = false
            let key = member.key
            JSONString.encode(Self.redacted(key), into: &out)
            out.append(UInt8(ascii: ":"))
            if Self.namesSecret(key), !member.value.isNull {
                JSONString.encode(Self.hidden, into: &out)
            } else {
                append(member.value)
            }
        }
        out.append(UInt8(ascii: "}"))
    }

    private mutating func append(elements json: JSON) {
        out.append(UInt8(ascii: "["))
        // Each takes at least a byte.
        for (position, element) in json.elements(upTo: limit + 1).enumerated() {
            if position > 0 { out.append(UInt8(ascii: ",")) }
            append(element)
        }
        out.append(UInt8(ascii: "]"))
    }

    private mutating func append(string json: JSON) {
        // Hidden text takes less room than the original, so more is read than is shown.
        let raw = json.bytes.dropFirst()
        let isWhole = raw.count <= 8 * limit
        let text = JSONString.decode(isWhole ? raw.dropLast() : raw.prefix(8 * limit))
        JSONString.encode(Self.redacted(text), into: &out)
    }

    // MARK: Secrets

    private static let secretNames = [
        "token", "apikey", "secret", "password", "passwd", "authorization", "jwt", "credential", "cookie",
    ]

    /// Whether a key of an object names a secret: `access_token`, `apikey`, `X-API-Key`.
    package static func namesSecret(_ key: String) -> Bool {
        let letters = key.lowercased().filter(\.isLetter)
        return secretNames.contains { letters.contains($0) }
    }

    /// Returns a text with `hidden` in place of its tokens.
    package static func redacted(_ text: String) -> String {
        let bytes = Array(text.utf8)
        var out: [UInt8] = []
        out.reserveCapacity(bytes.count)
        var at = 0
        while at < bytes.count {
            let secret = secretLength(bytes[at...])
            if secret > 0 {
                out += hidden.utf8
                at += secret
            } else {
                out.append(bytes[at])
                at += 1
            }
        }
        return String(decoding: out, as: UTF8.self)
    }

    /// Returns the length of the token that `bytes` begin with, which may be cut off; 0 if there is none.
    private static func secretLength(_ bytes: ArraySlice<UInt8>) -> Int {
        guard let first = bytes.first, first == UInt8(ascii: "e") || first == UInt8(ascii: "s") else { return 0 }
        guard bytes.starts(with: "eyJ".utf8) || bytes.starts(with: "sb_".utf8) else { return 0 }
        let length = bytes.prefix(while: isTokenByte).count
        return length >= 12 ? length : 0
    }

    /// Whether a byte may occur in a JWT (RFC 7515, section 7.1) or a key.
    package static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."),
            UInt8(ascii: "="), UInt8(ascii: "+"), UInt8(ascii: "/"), UInt8(ascii: "~"):
            true
        default: false
        }
    }
}

/// A frame's summary for an operator, whatever its direction and protocol version. Contains no secrets.
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

    /// Parses a whole message, without its frame's header.
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

    /// Parses a frame made by the hub.
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
            excerpt: payload.map { Excerpt.makeText($0) } ?? "")
    }

    /// Kind 3 has six length bytes after the kind, kind 4 has four (see `ClientFrame` and `ServerFrame`).
    private init(binary: ArraySlice<UInt8>) {
        let bytes = Array(binary.prefix(7))
        let isClients = bytes.first == 3
        guard isClients && bytes.count == 7 || bytes.first == 4 && bytes.count >= 5 else {
            self.init(topic: "", event: "malformed", excerpt: "")
            return
        }
        let lengths = (isClients ? bytes[1...5] : [0, 0, bytes[1], bytes[2], bytes[3]]).map { Int($0) }
        var rest = binary.dropFirst(isClients ? 7 : 5)
        func takeField(_ length: Int) -> String {
            defer { rest = rest.dropFirst(length) }
            return Excerpt.redacted(String(decoding: rest.prefix(length), as: UTF8.self))
        }
        let fields = lengths.map(takeField)
        let isJSON = bytes[isClients ? 6 : 4] == UserBroadcast.Encoding.json.rawValue
        self.init(
            topic: fields[2], event: fields[3],
            excerpt: isJSON ? Self.excerpt(ofJSON: rest) : "\(rest.count) bytes that are not JSON")
    }

    /// The bytes have not been validated, so they may be anything.
    package static func excerpt(ofJSON bytes: ArraySlice<UInt8>) -> String {
        do { return Excerpt.makeText(try JSON(parsing: bytes)) } catch {
            return "\(bytes.count) bytes that are not JSON"
        }
    }
}
