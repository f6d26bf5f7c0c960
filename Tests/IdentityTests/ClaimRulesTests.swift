import Identity
import Testing
import Wire

@Suite struct ClaimRulesTests {
    private func refusal(_ more: String, _ rules: ClaimRules = ClaimRules()) throws -> Refusal? {
        let secret = VerificationKey(secret: Array(TokenForge.secret.utf8), for: [.hs256])
        return JWTVerifier(ActiveKeys([secret]), rules: rules)
            .refusal(TokenForge().sign("{\"role\":\"anon\",\"exp\":4000000000\(more)}"))
    }

    @Test("a role that no database can have")
    func role() throws {
        #expect(try refusal(#","role":"an\u0000on""#) == .roleInvalid)
    }

    @Test(
        "the issuer",
        arguments: [
            (#","iss":"https://a""#, nil), (#","iss":"https://b""#, nil), (#","iss":"https://c""#, .issuerRefused),
            (#","iss":"https://a/""#, .issuerRefused), (#","iss":["https://a"]"#, .issuerRefused),
            (#","iss":"""#, .issuerRefused), (#","iss":null"#, .issuerRefused), ("", .issuerRefused),
        ] as [(String, Refusal?)])
    func issuer(_ claim: String, _ expected: Refusal?) throws {
        #expect(try refusal(claim, ClaimRules(issuers: ["https://a", "https://b"])) == expected)
        #expect(try refusal(claim) == nil, "not configured: not looked at")
    }

    @Test(
        "the audience, one or several",
        arguments: [
            (#","aud":"a""#, nil), (#","aud":"b""#, nil), (#","aud":["x","b"]"#, nil), (#","aud":[7,"a"]"#, nil),
            (#","aud":"x""#, .audienceRefused), (#","aud":["x"]"#, .audienceRefused), (#","aud":[]"#, .audienceRefused),
            (#","aud":"a b""#, .audienceRefused), (#","aud":{"a":"a"}"#, .audienceRefused),
            (#","aud":null"#, .audienceRefused), ("", .audienceRefused),
        ] as [(String, Refusal?)])
    func audience(_ claim: String, _ expected: Refusal?) throws {
        #expect(try refusal(claim, ClaimRules(audiences: ["a", "b"])) == expected)
        #expect(try refusal(claim) == nil, "not configured: not looked at")
    }

    @Test(
        "the beginning, with a leeway for clocks that differ",
        arguments: [
            (#","nbf":1"#, nil), (#","nbf":2000"#, nil), (#","nbf":2030"#, nil), (#","nbf":2029.9"#, nil),
            (#","nbf":2031"#, .tokenNotYetValid), (#","nbf":4000000000"#, .tokenNotYetValid),
            (#","nbf":1e300"#, .tokenNotYetValid), (#","nbf":-1"#, nil),
            (#","nbf":"2000""#, .tokenMalformed), (#","nbf":null"#, .tokenMalformed),
        ] as [(String, Refusal?)])
    func beginning(_ claim: String, _ expected: Refusal?) throws {
        #expect(try refusal(claim) == expected)
    }

    @Test("a token that came too early is not remembered as bad")
    func laterOn() throws {
        let verifier = JWTVerifier(secret: TokenForge.secret)
        let token = TokenForge().sign(#"{"role":"anon","exp":4000000000,"nbf":2100}"#)
        #expect(verifier.refusal(token) == .tokenNotYetValid)
        #expect(verifier.refusal(token, at: testTime.advanced(by: 100_000)) == nil)
    }
}
