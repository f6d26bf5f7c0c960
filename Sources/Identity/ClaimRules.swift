import Hub
import Wire

/// The claims that a token must have, besides a good signature.
package struct ClaimRules: Sendable {
    /// Accepted values of `iss`; empty: not checked.
    let issuers: Set<Name>
    /// Accepted values of `aud`; empty: not checked.
    let audiences: Set<Name>

    /// Clocks of two machines differ a little, and a token is often used in the second of its creation: PostgREST
    /// allows the same. `exp` gets no leeway, because a client that refreshes in time never needs it.
    static let leewaySeconds: Double = 30

    package init(issuers: [String] = [], audiences: [String] = []) {
        self.issuers = Set(issuers.map { Name($0) })
        self.audiences = Set(audiences.map { Name($0) })
    }

    /// Checks the payload of a token with a good signature, and returns its claims. `exp` is only parsed here;
    /// `Claims.expired` compares it.
    func validateClaims(_ payload: JSON) throws(Refusal) -> Claims {
        guard let role = payload["role"]?.string, !role.isEmpty, let expiry = payload["exp"] else {
            throw .claimsMissing
        }
        guard !role.utf8.contains(0) else { throw .roleInvalid }
        guard let seconds = expiry.double, seconds > 0, seconds < 1e15 else { throw .expirationInvalid }
        for name in ["iat", "nbf"] {
            if let claim = payload[name], claim.kind != .number { throw .tokenMalformed }
        }
        if !issuers.isEmpty {
            guard let issuer = payload["iss"]?.string, issuers.contains(Name(issuer)) else { throw .issuerRefused }
        }
        if !audiences.isEmpty {
            guard audiences.contains(anyOf: payload["aud"]) else { throw .audienceRefused }
        }
        return Claims(
            role: Name(role), subject: (payload["sub"]?.string).map { Name($0) }, expiresAt: Int(seconds),
            json: Array(payload.bytes))
    }

    /// `nbf` (RFC 7519, section 4.1.5).
    func checkBeginning(_ payload: JSON, at now: HubTime) throws(Refusal) {
        guard let beginning = payload["nbf"]?.double else { return }
        let early = beginning - Double(now.unix) / 1000
        if early > Self.leewaySeconds { throw .tokenNotYetValid }
    }
}

extension Set<Name> {
    /// `aud` is one string or an array of them (RFC 7519, section 4.1.3).
    fileprivate func contains(anyOf audience: JSON?) -> Bool {
        guard let audience else { return false }
        if let one = audience.string { return contains(Name(one)) }
        return audience.elements.contains { ($0.string.map { contains(Name($0)) }) ?? false }
    }
}
