import Signatures
import Wire

/// The operator's key pair that identifies the hub to push services (VAPID; RFC 8292). Browsers subscribe with its public half.
package struct VAPIDKey: Sendable {
    let key: P256PrivateKey
    /// The public key in the format of browsers and push services: base64url of an uncompressed point.
    package let publicText: String
    /// The contact address for push services: a `mailto:` or `https:` URL.
    package let subject: String

    /// - Parameters:
    ///   - text: the private number in base64url, as written by `roost push keys`, or PEM, whose line breaks may be
    ///     written as `\n`.
    /// - Throws: `VAPIDKeyError`, one sentence that never quotes the key.
    package init(privateKey text: String, subject: String) throws(VAPIDKeyError) {
        guard let key = Self.key(text), let point = key.point else { throw .key }
        guard Self.isSubject(subject) else { throw .subject }
        self.key = key
        self.subject = subject
        publicText = Base64URL.encode(point)
    }

    private static func key(_ text: String) -> P256PrivateKey? {
        let text = text.replacing("\\n", with: "\n")
        if text.contains("-----BEGIN ") { return P256PrivateKey(pem: text) }
        let digits = text.utf8.filter { $0 > 0x20 && $0 != UInt8(ascii: "=") }
        return Base64URL.decode(digits).flatMap { P256PrivateKey(scalar: $0) }
    }

    /// RFC 8292, section 2.1. The subject needs no escaping in JSON.
    private static func isSubject(_ text: String) -> Bool {
        (text.hasPrefix("mailto:") || text.hasPrefix("https://")) && text.utf8.count <= 256
            && text.utf8.allSatisfy {
                (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\")
            }
    }

    /// Creates a key pair as texts: the configured one, and the one shown to browsers.
    package static func create() -> (privateText: String, publicText: String)? {
        var random = SystemRandomNumberGenerator()
        let scalar = P256.scalar(using: &random)
        guard let point = P256PrivateKey(scalar: scalar)?.point else { return nil }
        return (Base64URL.encode(scalar), Base64URL.encode(point))
    }
}

/// The reason why a key for Web Push cannot be used.
package enum VAPIDKeyError: Error, Equatable {
    case key, subject
}

extension VAPIDKeyError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .key:
            "The private key for Web Push is no key of P-256: give the text that `roost push keys` writes (43 letters, digits, "
                + "- and _), or a key in PEM."
        case .subject:
            "The subject for Web Push is neither mailto:ADDRESS nor an https:// URL: push services write there when something is "
                + "wrong."
        }
    }
}
