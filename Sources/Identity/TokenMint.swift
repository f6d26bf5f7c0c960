package import Hub
import Signatures
package import Wire

/// Signs tokens for development, tests and the demo. In production an identity service signs them.
package struct TokenMint: Sendable {
    private let key: MessageAuthenticationKey
    private let algorithm: SignatureAlgorithm

    /// Shorter secrets can be guessed offline from any token (RFC 7518, section 3.2, requires at least the length of
    /// the hash).
    package static let minimumBytes = 32

    /// - Parameter algorithm: a symmetric one.
    package init(secret: String, algorithm: SignatureAlgorithm = .hs256) {
        precondition(algorithm.isSymmetric, "a secret signs with HS256, HS384 or HS512")
        key = MessageAuthenticationKey(Array(secret.utf8), algorithm.hash)
        self.algorithm = algorithm
    }

    /// - Parameters:
    ///   - lifetime: seconds from `now`.
    ///   - extra: an object with further claims, which take precedence over the other parameters.
    package func mint(
        role: String, subject: String?, lifetime: Int, now: HubTime, extra: JSON = .emptyObject
    ) -> String {
        let issued = Int(now.unix / 1000)
        var claims: [(name: String, value: [UInt8])] = [("role", JSONString.encode(role))]
        if let subject { claims.append(("sub", JSONString.encode(subject))) }
        claims += [("iat", Array("\(issued)".utf8)), ("exp", Array("\(issued + lifetime)".utf8))]
        claims.removeAll { extra[$0.name] != nil }
        extra.forEachMember { claims.append(($0.key, Array($0.value.bytes))) }
        var payload: [UInt8] = []
        for claim in claims {
            payload.append(UInt8(ascii: payload.isEmpty ? "{" : ","))
            payload += JSONString.encode(claim.name) + [UInt8(ascii: ":")] + claim.value
        }
        payload.append(UInt8(ascii: "}"))
        let header = "{\"alg\":\"\(algorithm.rawValue)\",\"typ\":\"JWT\"}"
        let signed = Base64URL.encode(header.utf8) + "." + Base64URL.encode(payload)
        return signed + "." + Base64URL.encode(key.code(for: Array(signed.utf8)))
    }
}
