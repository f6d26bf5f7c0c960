import Glibc
import Streams
import Webhooks
import Wire

/// Identifies a request to the backend that receives it: its user, its turn, and its stream.
enum ForwardSignature {
    /// `roost-turn` is base64 of a JSON object; the signature covers the id, the time, this header and the body, separated by dots.
    ///
    /// - Parameter now: seconds since 1970.
    static func headers(of forward: StreamForward, by secret: WebhookSecret, at now: Int64) -> [String] {
        let ticket = StreamTicket(
            name: forward.name, generation: forward.generation, expiresAt: Int(now) + ForwardTicket.seconds,
            bearer: forward.bearer)
        let turn = JSONWriter.object { facts in
            facts.writeMember("stream", forward.name.text)
            facts.writeMember("generation", forward.generation.text)
            facts.writeMember("claims", json: forward.bearer.claims)
            facts.writeMember("ticket", ForwardTicket.encodeTicket(ticket, by: secret))
        }
        let encoded = base64(turn)
        let signed = Array((encoded + ".").utf8) + forward.body
        let signature = secret.signature(of: signed, id: forward.generation.text, timestamp: now)
        return [
            "roost-turn: \(encoded)", "webhook-id: \(forward.generation.text)", "webhook-timestamp: \(now)",
            "webhook-signature: \(signature)",
        ]
    }
}

/// The text of a `StreamTicket`: base64 of its content, a dot, and a signature of the content.
enum ForwardTicket {
    /// How long a ticket is valid.
    static let seconds = 3600
    private static let id = "stream-ticket"

    static func encodeTicket(_ ticket: StreamTicket, by secret: WebhookSecret) -> String {
        let facts = JSONWriter.object { facts in
            facts.writeMember("stream", ticket.name.text)
            facts.writeMember("generation", ticket.generation.text)
            facts.writeMember("expires", ticket.expiresAt)
            facts.writeMember("role", ticket.bearer.role.text)
            facts.writeMember("claims", json: ticket.bearer.claims)
        }
        return base64(facts) + "." + signature(of: facts, by: secret)
    }

    static func decodeTicket(_ text: String, by secret: WebhookSecret) -> StreamTicket? {
        let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 2, let facts = Base64.decode(parts[0]),
            secret.isSignature(String(Substring(parts[1])), of: facts, id: id, timestamp: 0)
        else { return nil }
        let json = JSON(trusted: facts[...])
        guard let name = json["stream"]?.string.flatMap({ StreamName($0) }),
            let generation = json["generation"]?.string.flatMap({ StreamID($0) }), let expiresAt = json["expires"]?.int,
            let role = json["role"]?.string, let claims = json["claims"]
        else { return nil }
        return StreamTicket(
            name: name, generation: generation, expiresAt: expiresAt,
            bearer: StreamBearer(role: Name(role), claims: Array(claims.bytes)))
    }

    private static func signature(of facts: [UInt8], by secret: WebhookSecret) -> String {
        secret.signature(of: facts, id: id, timestamp: 0)
    }
}

private func base64(_ bytes: [UInt8]) -> String {
    var text: [UInt8] = []
    Base64.append(bytes[...], to: &text)
    return String(decoding: text, as: UTF8.self)
}
