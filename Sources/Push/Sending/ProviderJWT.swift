import Wire

/// The JWT that stands for the operator at APNs (Apple, "Establishing a token-based connection to APNs"; RFC 7515).
struct ProviderToken: Sendable {
    let jwt: String
    /// Counts those of this process.
    let generation: Int

    /// - Parameter issuedAt: seconds since 1970.
    init(signedBy key: ProviderKey, issuedAt: Int64, generation: Int) throws {
        let header = "{\"alg\":\"ES256\",\"kid\":\"\(key.keyID)\"}"
        let claims = "{\"iss\":\"\(key.teamID)\",\"iat\":\(issuedAt)}"
        let signed = Base64URL.encode(header.utf8) + "." + Base64URL.encode(claims.utf8)
        guard let signature = key.key.signature(of: Array(signed.utf8)) else { throw ProviderKeyError.unusable }
        jwt = signed + "." + Base64URL.encode(signature)
        self.generation = generation
    }
}
