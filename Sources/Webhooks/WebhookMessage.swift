import Hub
import Signatures
import Wire

/// The secret by which a backend verifies webhooks (Standard Webhooks, "Verifying webhook authenticity").
package struct WebhookSecret: Sendable {
    fileprivate let key: MessageAuthenticationKey

    private static let prefix = "whsec_"
    fileprivate static let version = "v1,"

    /// Nil unless the text is `whsec_` and the base64 of at least 24 bytes.
    package init?(_ text: String) {
        guard text.hasPrefix(Self.prefix), let bytes = Base64.decode(text.dropFirst(Self.prefix.count).utf8),
            bytes.count >= 24
        else { return nil }
        key = MessageAuthenticationKey(bytes, .sha256)
    }

    /// The header `webhook-signature`.
    ///
    /// - Parameter timestamp: seconds since 1970.
    package func signature(of body: [UInt8], id: String, timestamp: Int64) -> String {
        var text = Array(Self.version.utf8)
        Base64.append(key.code(for: Array("\(id).\(timestamp).".utf8) + body)[...], to: &text)
        return String(decoding: text, as: UTF8.self)
    }
}

extension WebhookSecret {
    /// Whether a header is the signature of these bytes; compared in constant time.
    package func isSignature(_ text: String, of body: [UInt8], id: String, timestamp: Int64) -> Bool {
        guard text.hasPrefix(Self.version), let code = Base64.decode(text.dropFirst(Self.version.count).utf8) else {
            return false
        }
        return key.isCode(code, for: Array("\(id).\(timestamp).".utf8) + body)
    }
}

/// Events on their way to the backend, as one request that stays the same however often it is sent.
struct WebhookMessage: Sendable {
    let id: String
    /// The id for the backend's tracing (W3C Trace Context, section 3.2): a trace of its own, because its events come from many clients.
    let traceparent: String
    /// The number of events.
    let count: Int
    /// Standard Webhooks' `type`, `timestamp` and `data`.
    let body: [UInt8]

    /// - Parameters:
    ///   - id: unique to the message: a backend recognizes repetitions by it.
    ///   - events: at least one, in the order in which they happened.
    ///   - node: the hub's name.
    init(
        id: String, _ events: [Happenings.Event], node: String,
        random: some RandomNumberGenerator = SystemRandomNumberGenerator()
    ) {
        self.id = id
        traceparent = Self.makeTraceparent(random)
        count = events.count
        body = JSONWriter.object { writer in
            writer.writeMember("type", "roost.events")
            let time = CivilTime(millisecondsSince1970: Int(events.last?.at ?? 0))
            writer.writeMember("timestamp", "\(time.day)T\(time.clock)Z")
            writer.writeKey("data")
            writer.object { writer in
                writer.writeMember("node", node)
                writer.array("events", events) { writer, event in
                    writer.object { Self.writeEvent(event, to: &$0) }
                }
            }
        }
    }

    /// Leaves sampling to the backend. Neither id may be all zeros.
    private static func makeTraceparent(_ random: some RandomNumberGenerator) -> String {
        var random = random
        func digits() -> String { Hexadecimal.text(UInt64.random(in: 1 ... .max, using: &random), width: 16) }
        return "00-\(digits())\(digits())-\(digits())-00"
    }

    private static func writeEvent(_ event: Happenings.Event, to writer: inout JSONWriter) {
        writer.writeMember("type", event.kind.rawValue)
        writer.writeMember("at", event.at)
        if let channel = event.channel {
            writer.writeMember("channel", String(channel.name))
            writer.writeMember("private", channel.isPrivate)
        }
        if let key = event.key { writer.writeMember("key", key) }
        if let user = event.user { writer.writeMember("user", user.text) }
        if let client = event.client { writer.writeMember("client", client) }
        if let payload = event.payload { writer.writeMember("payload", json: payload) }
        if let count = event.count { writer.writeMember("count", count) }
    }
}
