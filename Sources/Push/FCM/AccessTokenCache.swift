import Documents
import Hub
import Wire

/// Keeps the one access token that authorizes all messages to FCM (Google, "Using OAuth 2.0 for Server to Server Applications"; RFC
/// 7523).
///
/// The token is renewed some minutes before it expires, while the old one stays in use. A wrong clock is no obstacle: assertions are
/// dated by the server's clock as soon as its answers reveal a difference. Pure: it writes requests and reads answers.
struct AccessTokenCache {
    private struct AccessToken {
        let authorization: PushAuthorization
        let fetchedAt: Int64
        /// In monotonic milliseconds, as the next.
        let expiresAt: Int64
        let renewAt: Int64
    }

    private let account: ServiceAccount
    private var token: AccessToken?
    private var isFetching = false
    private var failures = 0
    private var nextAttempt: Int64 = 0
    /// The lead of the server's clock over this machine's, in milliseconds.
    private(set) var skew: Int64 = 0
    /// The number of tokens fetched.
    private(set) var fetched = 0

    /// The scope of FCM's tokens (Google, "Authorize send requests").
    private static let scope = "https://www.googleapis.com/auth/firebase.messaging"
    /// The longest life of an assertion, in seconds.
    private static let assertionLife: Int64 = 3600
    /// The time before a token's end at which it is renewed, in milliseconds, as the next five.
    private static let margin: Int64 = 300_000
    /// Clocks that differ by less count as right.
    private static let tolerance: Int64 = 30_000
    private static let firstPause: Int64 = 1000
    private static let longestPause: Int64 = 60_000
    /// The pause between attempts with a refused key.
    private static let refusalPause: Int64 = 60_000
    private static let limits = JSONDocument.Limits(bytes: 65_536, depth: 8)

    init(_ account: ServiceAccount) { self.account = account }

    /// Returns nil if no token is valid now.
    func authorization(at now: HubTime) -> PushAuthorization? {
        token.flatMap { now.monotonic < $0.expiresAt ? $0.authorization : nil }
    }

    /// The token's age, in milliseconds.
    func age(at now: HubTime) -> Int64? { token.map { now.monotonic - $0.fetchedAt } }

    /// Notes that the token of this generation was refused.
    ///
    /// - Returns: true: another one is being fetched, or has been.
    mutating func expire(_ generation: Int) -> Bool {
        if token?.authorization.generation == generation { token = nil }
        return true
    }

    /// The time when the next request is due, in monotonic milliseconds; nil while one is under way.
    func nextDue(at now: HubTime) -> Int64? {
        isFetching ? nil : max(nextAttempt, token?.renewAt ?? now.monotonic)
    }

    /// Returns the request for the next token, if it is due.
    mutating func request(at now: HubTime) throws -> PushRequest? {
        guard let due = nextDue(at: now), due <= now.monotonic else { return nil }
        let assertion = try assertion(at: now)
        isFetching = true
        var headers = RequestHeaders()
        headers.add(":path", Self.path(of: account.tokenURL))
        headers.add("content-type", "application/x-www-form-urlencoded")
        let body = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=" + assertion
        return PushRequest(headers: headers, body: Array(body.utf8))
    }

    /// Returns the assertion: a JWT with RS256, whose characters need no escaping in a form.
    private func assertion(at now: HubTime) throws -> String {
        let issuedAt = (now.unix + skew) / 1000
        let header = JSONWriter.object { header in
            header.writeMember("alg", "RS256")
            header.writeMember("typ", "JWT")
            header.writeMember("kid", account.keyID)
        }
        let claims = JSONWriter.object { claims in
            claims.writeMember("iss", account.email)
            claims.writeMember("scope", Self.scope)
            claims.writeMember("aud", account.tokenURL)
            claims.writeMember("iat", issuedAt)
            claims.writeMember("exp", issuedAt + Self.assertionLife)
        }
        let signed = Base64URL.encode(header) + "." + Base64URL.encode(claims)
        guard let signature = account.key.signature(of: Array(signed.utf8)) else { throw ServiceAccountError.badKey }
        return signed + "." + Base64URL.encode(signature)
    }

    private static func path(of url: String) -> String {
        let rest = url.dropFirst("https://".count)
        return rest.firstIndex(of: "/").map { String(rest[$0...]) } ?? "/"
    }

    /// Takes the answer to a request; nil if there was none.
    mutating func take(_ answer: Answer?, at now: HubTime) -> CredentialVerdict {
        isFetching = false
        guard let answer else { return failed(why: "", answer: nil, at: now) }
        let document: JSONDocument?
        do { document = try JSONDocument(parsing: answer.body, limits: Self.limits) } catch { document = nil }
        if answer.status == 200 { return took(document, answer, at: now) }
        if correctClock(by: answer, at: now) {
            nextAttempt = now.monotonic
            let seconds = abs(skew) / 1000
            return .later(
                why:
                    "this machine's clock is \(seconds) s \(skew < 0 ? "ahead of" : "behind") Google's, which is made up for; set it right"
            )
        }
        let refusal = Answer(status: answer.status, reason: Answer.printable(document?["error"]?.string ?? ""))
        let reason = KnownReasons.tokens.name(of: refusal)
        guard (400..<500).contains(answer.status), answer.status != 429, answer.status != 408 else {
            return failed(why: "it answered with \(reason)", answer: answer, at: now)
        }
        nextAttempt = now.monotonic + Self.refusalPause
        let said = document?["error_description"]?.string.map { Answer.printable($0) } ?? ""
        return .refused(reason: reason, advice: Self.advice(reason, said))
    }

    private mutating func took(_ document: JSONDocument?, _ answer: Answer, at now: HubTime) -> CredentialVerdict {
        guard let text = document?["access_token"]?.string, !text.isEmpty, text.utf8.count <= 4000,
            text.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { return failed(why: "its answer has no access_token", answer: answer, at: now) }
        _ = correctClock(by: answer, at: now)
        let life = Int64(min(max(document?["expires_in"]?.int ?? 3600, 1), 86_400)) * 1000
        fetched += 1
        failures = 0
        nextAttempt = now.monotonic
        token = AccessToken(
            authorization: PushAuthorization(text: "Bearer " + text, generation: fetched), fetchedAt: now.monotonic,
            expiresAt: now.monotonic + life, renewAt: now.monotonic + max(life / 2, life - Self.margin))
        return .good
    }

    private mutating func failed(why: String, answer: Answer?, at now: HubTime) -> CredentialVerdict {
        failures += 1
        let pause = min(Self.longestPause, Self.firstPause << Int64(min(failures - 1, 10)))
        nextAttempt = now.monotonic + max(pause, min(answer?.retryAfter ?? 0, Self.longestPause))
        return .later(why: why)
    }

    /// - Returns: whether assertions are now dated differently.
    private mutating func correctClock(by answer: Answer, at now: HubTime) -> Bool {
        guard let date = answer.date else { return false }
        let ahead = date - now.unix
        guard abs(ahead - skew) > Self.tolerance else { return false }
        skew = abs(ahead) > Self.tolerance ? ahead : 0
        return true
    }

    private static func advice(_ reason: String, _ said: String) -> String {
        let words = said.isEmpty ? "" : " (\(said))"
        return switch reason {
        case "invalid_grant":
            "check that the service account's key is not deleted, that token_uri is Google's, and this machine's clock\(words)."
        case "invalid_client", "unauthorized_client":
            "the service account is disabled or deleted; make another key in the Firebase console\(words)."
        default: "check that the service account's token_uri leads to Google\(words)."
        }
    }
}

extension KnownReasons {
    /// The reasons for which a token is denied (RFC 6749, section 5.2).
    fileprivate static let tokens = KnownReasons(
        all: [
            "invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type",
            "invalid_scope",
        ])
}
