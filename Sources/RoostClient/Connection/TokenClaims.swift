import Foundation

/// What a client reads in its own token. Nothing is verified: that is the hub's business.
package struct TokenClaims: Equatable {
    /// Seconds since 1970 (RFC 7519, section 4.1.4).
    package let expiresAt: Double?

    package init(_ token: String) {
        expiresAt = Self.payload(of: token).flatMap { payload in
            do {
                return try JSONDecoder().decode(Payload.self, from: payload).exp
            } catch {
                // An opaque token has no claims, which is nobody's fault.
                return nil
            }
        }
    }

    private struct Payload: Decodable {
        let exp: Double?
    }

    /// The second part of a JWT: base64url without padding (RFC 7515, section 2).
    private static func payload(of token: String) -> Data? {
        let parts = token.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3 else { return nil }
        var text = parts[1].replacing("-", with: "+").replacing("_", with: "/")
        text += String(repeating: "=", count: (4 - text.count % 4) % 4)
        return Data(base64Encoded: String(text))
    }
}
