import Hub
import Identity
import Testing
import Wire

@Suite struct JWTVerifierTests {
    private let secret = JWTVerifier(secret: TokenForge.secret)
    private let mint = TokenMint(secret: TokenForge.secret)
    private let forge = TokenForge()
    private let now = HubTime(monotonic: 0, unix: 2_000_000)

    private func refusal(_ token: String, _ verifier: JWTVerifier? = nil, at time: HubTime? = nil) -> Refusal? {
        do {
            _ = try (verifier ?? secret).verifyToken(token, at: time ?? now)
            return nil
        } catch {
            return error
        }
    }

    // MARK: Good ones

    @Test func readsTheClaims() throws {
        let claims = try secret.verifyToken(forge.sign(), at: now)
        #expect(claims.role == "anon")
        #expect(claims.subject == "u1")
        #expect(claims.expiresAt == 4_000_000_000)
        #expect(String(decoding: claims.json, as: UTF8.self) == TokenForge.payload)
    }

    @Test func readsWhatItMints() throws {
        let token = mint.mint(role: "a\"b", subject: "ü", lifetime: 60, now: now)
        let claims = try secret.verifyToken(token, at: now)
        #expect(claims.role == "a\"b")
        #expect(claims.subject == "ü")
        #expect(claims.expiresAt == 2060)
        #expect(try JSON(parsing: claims.json)["iat"]?.int == 2000)
        #expect(
            try secret.verifyToken(mint.mint(role: "anon", subject: nil, lifetime: 1, now: now), at: now).subject == nil
        )
        #expect(refusal(token, JWTVerifier(secret: "another secret of thirty-two bytes, or so")) == .signatureInvalid)
    }

    /// The shape of RFC 7515, appendix A.1: its line breaks and order in header and payload are no obstacle.
    @Test func readsTheShapeOfTheRFC() throws {
        let header = "{\"typ\":\"JWT\",\r\n \"alg\":\"HS256\"}"
        #expect(Base64URL.encode(header.utf8) == "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9")
        let token = forge.sign("{\"iss\":\"joe\",\r\n \"exp\":4000000000,\r\n \"role\":\"anon\"}", header: header)
        #expect(try secret.verifyToken(token, at: now).role == "anon")
    }

    /// The very bytes of the RFC's example: the forge that all these tests rely on signs as it does.
    @Test func theForgeSignsAsTheRFC() throws {
        let key = try #require(
            Base64URL.decode(
                Array("AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow".utf8)))
        let signed =
            "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
        let signature = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
        #expect(TokenForge(key: key).signature(signed) == signature)
        #expect(refusal(signed + "." + signature) == .signatureInvalid, "another key than ours")
    }

    // MARK: Algorithms

    @Test(arguments: [
        #"{"alg":"none"}"#, #"{"alg":"None"}"#, #"{"alg":""}"#, #"{"alg":"hs256"}"#, #"{"alg":"HS512"}"#,
        #"{"alg":"HS384"}"#,
        #"{"alg":"RS256"}"#, #"{"alg":"ES256"}"#, #"{"alg":256}"#, #"{"alg":["HS256"]}"#, #"{"alg":null}"#, "{}",
        #"{"ALG":"HS256"}"#, #"{"alg":"HS256","alg":"none"}"#, #"{"alg":"HS256","crit":["exp"]}"#,
        #"{"alg":"HS256","crit":["b64"],"b64":false}"#,
    ])
    func refusesOtherAlgorithms(_ header: String) {
        #expect(refusal(forge.sign(header: header)) == .signatureInvalid)
        let unsigned = Base64URL.encode(header.utf8) + "." + Base64URL.encode(TokenForge.payload.utf8) + "."
        #expect(refusal(unsigned) == .signatureInvalid)
    }

    @Test func refusesLongerHashesUnderItsName() {
        let signed = Base64URL.encode(TokenForge.header.utf8) + "." + Base64URL.encode(TokenForge.payload.utf8)
        let code = forge.longCode(signed)
        #expect(refusal(signed + "." + Base64URL.encode(code)) == .signatureInvalid)
        #expect(refusal(signed + "." + Base64URL.encode(code.prefix(32))) == .signatureInvalid)
    }

    // MARK: Tampering

    @Test func everyChangedCharacterIsNoticed() {
        let token = Array(forge.sign().utf8)
        #expect(refusal(String(decoding: token, as: UTF8.self)) == nil)
        for index in token.indices {
            for replacement in Array("Az0-.=\u{0}".utf8) where token[index] != replacement {
                var changed = token
                changed[index] = replacement
                if refusal(String(decoding: changed, as: UTF8.self)) == nil {
                    Issue.record("\(index) \(replacement)")
                }
            }
        }
    }

    @Test func partsOfTwoTokensDoNotMix() {
        let one = forge.sign().split(separator: ".")
        let other = forge.sign(#"{"role":"service_role","exp":4000000000}"#).split(separator: ".")
        #expect(refusal("\(one[0]).\(other[1]).\(one[2])") == .signatureInvalid)
        #expect(refusal("\(one[0]).\(one[1]).\(other[2])") == .signatureInvalid)
    }

    /// To Swift, strings that look alike are equal; a cache must not think so.
    @Test func aTokenThatLooksLikeAKnownOneIsNotKnown() throws {
        let token = try #require(
            (0..<1000).lazy.map { forge.sign("{\"role\":\"r\($0)\",\"exp\":4000000000}") }.first { $0.contains("K") })
        #expect(refusal(token) == nil)
        let lookalike = token.replacing("K", with: "\u{212A}")
        #expect(lookalike == token, "this is why")
        #expect(refusal(lookalike) == .tokenMalformed)
    }

    // MARK: Malformed

    @Test(arguments: ["", ".", "..", "...", "a.b", "a.b.c.d", "eyJ9.e30.", " ", "null", "sb_publishable_x", "é.é.é"])
    func refusesWhatIsNoToken(_ token: String) { #expect(refusal(token) == .tokenMalformed) }

    @Test(arguments: ["[]", "7", "\"x\"", "null", "{", "", "{\"role\":\"anon\",}"])
    func refusesWhatIsNoObject(_ text: String) {
        #expect(refusal(forge.sign(text)) == .tokenMalformed)
        #expect(refusal(forge.sign(header: text)) == .tokenMalformed)
    }

    @Test func refusesSpaceAndPadding() {
        let token = forge.sign()
        for changed in [token + " ", " " + token, token + "=", token + ".", "Bearer " + token, token + "\n"] {
            #expect(refusal(changed) == .tokenMalformed)
        }
    }

    // MARK: Claims

    @Test(arguments: [
        (#"{"exp":4000000000}"#, Refusal.claimsMissing), (#"{"role":"anon"}"#, .claimsMissing), ("{}", .claimsMissing),
        (#"{"role":"","exp":4000000000}"#, .claimsMissing), (#"{"role":7,"exp":4000000000}"#, .claimsMissing),
        (#"{"role":null,"exp":4000000000}"#, .claimsMissing), (#"{"role":["anon"],"exp":4000000000}"#, .claimsMissing),
        (#"{"role":"anon","exp":"4000000000"}"#, .expirationInvalid),
        (#"{"role":"anon","exp":null}"#, .expirationInvalid),
        (#"{"role":"anon","exp":true}"#, .expirationInvalid), (#"{"role":"anon","exp":-1}"#, .expirationInvalid),
        (#"{"role":"anon","exp":0}"#, .expirationInvalid), (#"{"role":"anon","exp":1e999}"#, .expirationInvalid),
        (#"{"role":"anon","exp":9223372036854775808}"#, .expirationInvalid),
        (#"{"role":"anon","exp":{}}"#, .expirationInvalid),
        (#"{"role":"anon","exp":4000000000,"iat":"1000"}"#, .tokenMalformed),
        (#"{"role":"anon","exp":4000000000,"iat":null}"#, .tokenMalformed),
        (#"{"role":"anon","exp":1999}"#, .tokenExpired(secondsAgo: 1)),
        (#"{"role":"anon","exp":2000}"#, .tokenExpired(secondsAgo: 0)),
        (#"{"role":"anon","exp":1}"#, .tokenExpired(secondsAgo: 1999)),
    ])
    func refusesClaims(_ payload: String, _ expected: Refusal) {
        let token = forge.sign(payload)
        #expect(refusal(token) == expected)
        #expect(refusal(token) == expected, "the second time too")
    }

    @Test(arguments: [
        #"{"role":"anon","exp":2001}"#, #"{"role":"anon","exp":2001.9}"#, #"{"role":"anon","exp":4e9}"#,
        #"{"role":"anon","exp":4000000000,"iat":1.5}"#, #"{"role":"anon","exp":4000000000,"sub":7}"#,
    ])
    func acceptsClaims(_ payload: String) { #expect(refusal(forge.sign(payload)) == nil) }

    // MARK: The cache

    @Test func aKnownTokenIsTheSameClaims() throws {
        let token = forge.sign()
        #expect(try secret.verifyToken(token, at: now) === secret.verifyToken(token, at: now))
    }

    @Test func aKnownTokenExpires() throws {
        let token = forge.sign(#"{"role":"anon","exp":2010}"#)
        #expect(refusal(token) == nil)
        #expect(refusal(token, at: now.advanced(by: 9_999)) == nil)
        for _ in 0..<2 {
            #expect(refusal(token, at: now.advanced(by: 10_000)) == .tokenExpired(secondsAgo: 0))
        }
        #expect(refusal(token) == nil, "the time of the call counts")
    }

    /// More tokens than it keeps: the first is forgotten, so verifying it makes new claims.
    @Test func theCacheIsBounded() throws {
        let first = try secret.verifyToken(forge.sign(), at: now)
        for number in 0..<20_000 {
            _ = try secret.verifyToken(forge.sign("{\"role\":\"r\(number)\",\"exp\":4000000000}"), at: now)
        }
        #expect(try secret.verifyToken(forge.sign(), at: now) !== first)
    }
}

@Suite struct TokenMintTests {
    @Test("each hash", arguments: [SignatureAlgorithm.hs256, .hs384, .hs512])
    func algorithms(_ algorithm: SignatureAlgorithm) throws {
        let token = TokenMint(secret: TokenForge.secret, algorithm: algorithm)
            .mint(role: "anon", subject: nil, lifetime: 60, now: testTime)
        #expect(JWTVerifier(secret: TokenForge.secret).refusal(token) == nil)
        let one = VerificationKey(secret: Array(TokenForge.secret.utf8), for: [algorithm])
        #expect(JWTVerifier(ActiveKeys([one])).refusal(token) == nil, "it is signed as its header says")
    }

    @Test("further claims win over the usual ones, and none is there twice")
    func extra() throws {
        let extra = try JSON(parsing: Array(#"{"role":"admin","aud":["a","b"],"\u0065xp":2001,"name":"ü\"x"}"#.utf8))
        let token = TokenMint(secret: TokenForge.secret)
            .mint(role: "anon", subject: "u1", lifetime: 60, now: testTime, extra: extra)
        let claims = try JWTVerifier(secret: TokenForge.secret).verifyToken(token, at: testTime)
        #expect(
            String(decoding: claims.json, as: UTF8.self)
                == #"{"sub":"u1","iat":2000,"role":"admin","aud":["a","b"],"exp":2001,"name":"ü\"x"}"#)
    }
}
