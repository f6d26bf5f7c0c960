import Hub
import Wire

/// Tokens that say what they are worth: `good ROLE EXPIRY`, anything else is malformed.
struct TestVerifier: TokenVerifier {
    func verify(_ token: String, at now: HubTime) throws(Refusal) -> Claims {
        let parts = token.split(separator: " ")
        guard parts.count == 3, parts[0] == "good", let expiry = Int(parts[2]) else { throw .tokenMalformed }
        let claims = Stage.claims(String(parts[1]), expiresAt: expiry)
        if let expired = claims.expired(at: now) { throw expired }
        return claims
    }
}
