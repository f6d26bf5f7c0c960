import Identity
import Testing
import Wire

@Suite struct TokenMintTests {
    @Test("each hash", arguments: [SignatureAlgorithm.hs256, .hs384, .hs512])
    func algorithms(_ algorithm: SignatureAlgorithm) throws {
        let token = TokenMint(secret: TokenForge.secret, algorithm: algorithm)
            .mint(role: "anon", subject: nil, lifetime: 60, now: testTime)
        #expect(TokenGate(secret: TokenForge.secret).refusal(token) == nil)
        let one = VerificationKey(secret: Array(TokenForge.secret.utf8), for: [algorithm])
        #expect(TokenGate(KeyRing([one])).refusal(token) == nil, "it is signed as its header says")
    }

    @Test("further claims win over the usual ones, and none is there twice")
    func extra() throws {
        let extra = try JSON(parsing: Array(#"{"role":"admin","aud":["a","b"],"\u0065xp":2001,"name":"ü\"x"}"#.utf8))
        let token = TokenMint(secret: TokenForge.secret)
            .mint(role: "anon", subject: "u1", lifetime: 60, now: testTime, extra: extra)
        let claims = try TokenGate(secret: TokenForge.secret).verify(token, at: testTime)
        #expect(
            String(decoding: claims.json, as: UTF8.self)
                == #"{"sub":"u1","iat":2000,"role":"admin","aud":["a","b"],"exp":2001,"name":"ü\"x"}"#)
    }
}
