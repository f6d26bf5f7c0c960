import Hub
import Wire

/// Caches the one provider token that authorizes every request.
///
/// Apple refuses a token that is older than an hour, and one that changes more often than every 20 minutes. So the token is renewed
/// after 45 minutes, or when APNs finds it too old, and never twice within 20. One thread owns the cache, so one token serves all
/// requests. The rule holds for one process: a restart makes its own token.
struct ProviderTokenCache {
    /// In milliseconds, as the next two.
    static let refreshAge: Int64 = 45 * 60_000
    static let leastAge: Int64 = 20 * 60_000
    /// The machine's clock may have been set back by this much before the token counts as one from the future.
    private static let clockTolerance: Int64 = 60_000

    private let key: ProviderKey
    private var token: ProviderToken?
    private var mintedAt = HubTime(monotonic: 0, unix: 0)
    private var isTooOld = false
    /// The number of tokens made.
    private(set) var minted = 0

    init(_ key: ProviderKey) { self.key = key }

    /// Returns the token to send with.
    mutating func token(at now: HubTime) throws -> ProviderToken {
        if let token, !mustMint(now) { return token }
        let fresh = try ProviderToken(signedBy: key, issuedAt: now.unix / 1000, generation: minted + 1)
        minted += 1
        token = fresh
        mintedAt = now
        isTooOld = false
        return fresh
    }

    /// Notes that APNs found the token of this generation too old.
    ///
    /// - Returns: whether the next `token(at:)` is a different one, so that trying again is worthwhile.
    mutating func expire(_ generation: Int, at now: HubTime) -> Bool {
        guard let token else { return true }
        if token.generation > generation { return true }
        isTooOld = true
        return mustMint(now)
    }

    /// The token's age in milliseconds, by the monotonic clock; nil before the first token.
    func age(at now: HubTime) -> Int64? { token == nil ? nil : now.monotonic - mintedAt.monotonic }

    private func mustMint(_ now: HubTime) -> Bool {
        let age = now.monotonic - mintedAt.monotonic
        guard age >= Self.leastAge else { return false }
        // APNs judges by `iat`: a clock that was set is as good a reason as elapsed time.
        let ageByDate = now.unix - mintedAt.unix
        return isTooOld || max(age, ageByDate) >= Self.refreshAge || ageByDate < -Self.clockTolerance
    }
}

/// The JWT that authenticates the operator at APNs (Apple, "Establishing a token-based connection to APNs"; RFC 7515).
struct ProviderToken: Sendable {
    let jwt: String
    /// The token's number among those of this process, from 1.
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
