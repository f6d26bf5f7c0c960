package import Wire

/// The claims of a verified token. A class, because all bearers of a token share it.
///
/// Equal claims are one principal: policies see nothing else of a user, so what one may see the other may, too.
package final class Claims: Sendable {
    /// The Postgres role to act as.
    package let role: Name
    /// `sub`: the user, if the token names one.
    package let subject: Name?
    /// `exp`, in seconds since 1970 (RFC 7519, section 4.1.4).
    package let expiresAt: Int
    /// All claims as JSON, for `request.jwt.claims`.
    package let json: [UInt8]
    /// Computed once: claims are looked up for every row that a policy decides.
    private let hash: Int

    package init(role: Name, subject: Name?, expiresAt: Int, json: [UInt8]) {
        self.role = role
        self.subject = subject
        self.expiresAt = expiresAt
        self.json = json
        var hasher = Hasher()
        hasher.combine(json)
        hash = hasher.finalize()
    }

    /// Returns the same principal with an expiry of `now` at the latest.
    func ending(at now: HubTime) -> Claims {
        Claims(role: role, subject: subject, expiresAt: min(expiresAt, Int(now.unix / 1000)), json: json)
    }

    /// Returns the refusal that applies at `now` if the token has expired.
    package func expiryRefusal(at now: HubTime) -> Refusal? {
        let late = Int(now.unix / 1000) - expiresAt
        return late >= 0 ? .tokenExpired(secondsAgo: late) : nil
    }
}

extension Claims: Hashable {
    package static func == (one: Claims, other: Claims) -> Bool {
        one === other
            || one.hash == other.hash && one.json == other.json && one.role == other.role
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(hash) }
}

/// Verifies tokens. The hub asks; it has no keys.
package protocol TokenVerifier: Sendable {
    /// Returns the claims of a token that is signed by a known key and not expired at `now`.
    func verifyToken(_ token: String, at now: HubTime) throws(Refusal) -> Claims
}
