import Hub
import Wire

/// Tokens that say what they are worth: `good ROLE EXPIRY`, with a user behind it or none; anything else is malformed.
struct TestVerifier: TokenVerifier {
    func verifyToken(_ token: String, at now: HubTime) throws(Refusal) -> Claims {
        let parts = token.split(separator: " ")
        guard (3...4).contains(parts.count), parts[0] == "good", let expiry = Int(parts[2]) else {
            throw .tokenMalformed
        }
        let claims = Stage.claims(
            String(parts[1]), subject: parts.count > 3 ? String(parts[3]) : nil, expiresAt: expiry)
        if let expired = claims.expiryRefusal(at: now) { throw expired }
        return claims
    }
}
