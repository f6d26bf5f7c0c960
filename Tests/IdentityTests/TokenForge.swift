import Identity
import Signatures
import Wire

/// Signs whatever it is told to, as somebody who knows the secret could.
struct TokenForge {
    private let key: [UInt8]

    init(_ secret: String = TokenForge.secret) { self.init(key: Array(secret.utf8)) }

    init(key: [UInt8]) { self.key = key }

    static let secret = "a secret of more than thirty-two bytes"
    static let header = #"{"alg":"HS256","typ":"JWT"}"#
    /// Good until the year 2096.
    static let payload = #"{"role":"anon","sub":"u1","iat":1000,"exp":4000000000}"#

    func sign(_ payload: String = TokenForge.payload, header: String = TokenForge.header) -> String {
        let signed = Base64URL.encode(header.utf8) + "." + Base64URL.encode(payload.utf8)
        return signed + "." + signature(signed)
    }

    func signature(_ signed: String) -> String {
        Base64URL.encode(MessageAuthenticationKey(key, .sha256).code(for: Array(signed.utf8)))
    }

    /// What HS512 would append.
    func longCode(_ signed: String) -> [UInt8] {
        MessageAuthenticationKey(key, .sha512).code(for: Array(signed.utf8))
    }
}
