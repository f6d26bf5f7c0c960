import Hub
import Wire

/// The signed tokens that identify the hub to push services (RFC 8292, section 2), one for each origin, kept until half of their life
/// is over.
///
/// A push service accepts tokens that expire within 24 hours by its own clock. One whose clock differs from this machine's gets tokens
/// dated by its own.
struct VAPIDTokens {
    /// In milliseconds: far enough from both ends for clocks that are wrong by hours.
    private static let life: Int64 = 12 * 3_600_000
    private static let refreshAge: Int64 = 6 * 3_600_000
    /// Clocks that differ by less count as equal: answers take time, and dates have a resolution of seconds.
    private static let tolerance: Int64 = 60_000
    /// More origins than a hub ever has at once; above that, all tokens are signed again.
    private static let capacity = 1024

    private let key: VAPIDKey
    private var tokens: [Name: Token] = [:]
    /// The lead of an origin's clock over this machine's, in milliseconds.
    private var offsets: [Name: Int64] = [:]
    /// The number of tokens signed.
    private(set) var signed = 0

    private struct Token {
        let header: String
        let time: HubTime
        /// The token's number among those of this process, from 1.
        let generation: Int
    }

    init(_ key: VAPIDKey) { self.key = key }

    /// Returns the authorization of requests to an origin; nil if it cannot be signed.
    mutating func authorization(for origin: Name, at now: HubTime) -> PushAuthorization? {
        if let token = tokens[origin] {
            let age = now.monotonic - token.time.monotonic
            let ageByDate = now.unix - token.time.unix
            if max(age, ageByDate) < Self.refreshAge, ageByDate > -Self.tolerance {
                return PushAuthorization(text: token.header, generation: token.generation)
            }
        }
        if tokens.count >= Self.capacity { tokens.removeAll() }
        let end = (now.unix + (offsets[origin] ?? 0) + Self.life) / 1000
        let claims = "{\"aud\":\"\(origin.text)\",\"exp\":\(end),\"sub\":\"\(key.subject)\"}"
        let text = Self.header + "." + Base64URL.encode(claims.utf8)
        guard let signature = key.key.signature(of: Array(text.utf8)) else { return nil }
        signed += 1
        let header = "vapid t=\(text).\(Base64URL.encode(signature)), k=\(key.publicText)"
        tokens[origin] = Token(header: header, time: now, generation: signed)
        return PushAuthorization(text: header, generation: signed)
    }

    /// Notes that an origin refused the token of a generation.
    ///
    /// - Parameter date: the origin's clock, in milliseconds since 1970; nil if it did not report it.
    /// - Returns: whether the next token is a different one, so that trying again is worthwhile.
    mutating func expire(_ generation: Int, of origin: Name, date: Int64?, at now: HubTime) -> Bool {
        // Many requests may have left with the token before the first answer came.
        guard tokens[origin]?.generation == generation else { return true }
        guard let date else { return false }
        let offset = date - now.unix
        guard abs(offset - (offsets[origin] ?? 0)) > Self.tolerance else { return false }
        if offsets.count >= Self.capacity { offsets.removeAll() }
        offsets[origin] = offset
        tokens[origin] = nil
        return true
    }

    private static let header = Base64URL.encode("{\"typ\":\"JWT\",\"alg\":\"ES256\"}".utf8)
}
