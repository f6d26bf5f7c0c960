import Crypto
package import Hub
import Synchronization
package import Wire

/// Verifies and mints tokens signed with a shared secret: JWTs (RFC 7519) under HS256 (RFC 7518, section 3.2).
///
/// Verifying is a few microseconds of the loop's time, and a token that was seen before none: what it said is kept until
/// it expires.
package final class SharedSecret: TokenVerifier {
    private let key: SymmetricKey
    private let seen = Mutex<[String: Claims]>([:])
    private static let capacity = 20_000

    /// Shorter secrets can be guessed offline from any token (RFC 7518 wants as many bits as the hash has).
    package static let minimumBytes = 32

    package init(_ secret: String) {
        key = SymmetricKey(data: Array(secret.utf8))
    }

    package func verify(_ token: String, at now: HubTime) throws(Refusal) -> Claims {
        // To a dictionary, strings that look alike are equal: the kelvin sign would pass for a K.
        guard token.utf8.allSatisfy({ $0 < 0x80 }) else { throw .tokenMalformed }
        if let claims = seen.withLock({ $0[token] }) {
            if let expired = claims.expired(at: now) {
                _ = seen.withLock { $0.removeValue(forKey: token) }
                throw expired
            }
            return claims
        }
        let claims = try check(token)
        if let expired = claims.expired(at: now) { throw expired }
        seen.withLock { seen in
            if seen.count >= Self.capacity { seen.removeAll(keepingCapacity: true) }
            seen[token] = claims
        }
        return claims
    }

    private func check(_ token: String) throws(Refusal) -> Claims {
        let bytes = Array(token.utf8)
        let parts = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, let header = Self.object(parts[0]), let payload = Self.object(parts[1]),
            let signature = Base64URL.decode(parts[2])
        else { throw .tokenMalformed }
        // `crit` lists extensions that must be understood (RFC 7515, section 4.1.11); none is.
        guard header["alg"]?.string == "HS256", header["crit"] == nil else { throw .signatureInvalid }
        // Compares in constant time.
        let signed = bytes[..<(parts[1].endIndex)]
        guard HMAC<SHA256>.isValidAuthenticationCode(signature, authenticating: Array(signed), using: key) else {
            throw .signatureInvalid
        }
        return try Self.claims(payload)
    }

    private static func object(_ part: ArraySlice<UInt8>) -> JSON? {
        guard let bytes = Base64URL.decode(part) else { return nil }
        do {
            let json = try JSON(parsing: bytes)
            return json.kind == .object ? json : nil
        } catch {
            return nil
        }
    }

    private static func claims(_ payload: JSON) throws(Refusal) -> Claims {
        guard let role = payload["role"]?.string, !role.isEmpty, let expiry = payload["exp"] else {
            throw .claimsMissing
        }
        guard let seconds = expiry.double, seconds > 0, seconds < 1e15 else { throw .expirationInvalid }
        if let issued = payload["iat"], issued.kind != .number { throw .tokenMalformed }
        return Claims(
            role: role, subject: payload["sub"]?.string, expiresAt: Int(seconds), json: Array(payload.bytes))
    }

    /// A token for development and tests.
    ///
    /// - Parameter lifetime: seconds from `now`.
    package func mint(role: String, subject: String?, lifetime: Int, now: HubTime) -> String {
        let issued = Int(now.unix / 1000)
        var payload = Array("{\"role\":".utf8) + JSONString.encode(role)
        if let subject { payload += Array(",\"sub\":".utf8) + JSONString.encode(subject) }
        payload += Array(",\"iat\":\(issued),\"exp\":\(issued + lifetime)}".utf8)
        let signed = Base64URL.encode("{\"alg\":\"HS256\",\"typ\":\"JWT\"}".utf8) + "." + Base64URL.encode(payload)
        let code = HMAC<SHA256>.authenticationCode(for: Array(signed.utf8), using: key)
        return signed + "." + Base64URL.encode(code)
    }
}
