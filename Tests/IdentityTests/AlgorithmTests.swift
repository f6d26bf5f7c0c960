import Identity
import Testing
import Wire

@Suite struct AlgorithmTests {
    @Test("a key of each kind verifies what it signed", arguments: SignatureAlgorithm.allCases)
    func verifies(_ algorithm: SignatureAlgorithm) async throws {
        let key = SigningKey(for: algorithm)
        for limit in [nil, algorithm] {
            let verifier = try verifier(keySet(key.jwk(kid: "k", alg: limit)))
            let token = key.token(algorithm, kid: "k")
            #expect(try verifier.verifyToken(token, at: testTime).subject == "u1")
            #expect(try verifier.verifyToken(token, at: testTime) === verifier.verifyToken(token, at: testTime))
            #expect(verifier.refusal(key.token(algorithm)) == nil, "a token need not name its key")
        }
    }

    @Test("and not what another one signed", arguments: SignatureAlgorithm.allCases)
    func refuses(_ algorithm: SignatureAlgorithm) async throws {
        let key = SigningKey(for: algorithm)
        let stranger = SigningKey.another(for: algorithm)
        let verifier = try verifier(keySet(key.jwk(kid: "k")))
        #expect(verifier.refusal(stranger.token(algorithm, kid: "k")) == .signatureInvalid)
        #expect(verifier.refusal(stranger.token(algorithm)) == .signatureInvalid)
        #expect(verifier.refusal(stranger.token(algorithm, kid: "other")) == .keyUnknown)
        let parts = key.token(algorithm, kid: "k").split(separator: ".")
        #expect(verifier.refusal("\(parts[0]).\(parts[1]).") == .signatureInvalid, "no signature")
        #expect(verifier.refusal("\(parts[0]).\(parts[1]).\(parts[2])AAAA") == .signatureInvalid, "a longer signature")
    }

    @Test("a key with `alg` serves that algorithm only")
    func limited() async throws {
        let key = SigningKey.someRSA
        let verifier = try verifier(keySet(key.jwk(kid: "k", alg: .rs384)))
        for algorithm in SignatureAlgorithm.allCases
        where algorithm.rawValue.hasPrefix("RS") || algorithm.rawValue.hasPrefix("PS") {
            let expected: Refusal? = algorithm == .rs384 ? nil : .signatureInvalid
            #expect(verifier.refusal(key.token(algorithm, kid: "k")) == expected, "\(algorithm)")
            #expect(verifier.refusal(key.token(algorithm)) == expected, "\(algorithm)")
        }
    }

    @Test("the allow list limits every key, secrets too")
    func allowed() async throws {
        let rsa = SigningKey.someRSA
        let secret = SigningKey.secret(Array(TokenForge.secret.utf8))
        let verifier = try verifier(
            keySet(rsa.jwk(kid: "k")), secret: TokenForge.secret, allowing: [.hs512, .ps256])
        #expect(verifier.refusal(secret.token(.hs512)) == nil)
        #expect(verifier.refusal(secret.token(.hs256)) == .signatureInvalid)
        #expect(verifier.refusal(rsa.token(.ps256, kid: "k")) == nil)
        #expect(verifier.refusal(rsa.token(.rs256, kid: "k")) == .signatureInvalid)
    }

    @Test("several keys at once: the name selects, and without a name all are tried")
    func rotation() async throws {
        let keys = (0..<3).map { _ in SigningKey(for: .es256) }
        let set = keySet(keys[0].jwk(kid: "a"), keys[1].jwk(kid: "b"), keys[2].jwk())
        let verifier = try verifier(set)
        #expect(verifier.refusal(keys[0].token(.es256, kid: "a")) == nil)
        #expect(verifier.refusal(keys[1].token(.es256, kid: "b")) == nil)
        #expect(verifier.refusal(keys[1].token(.es256, kid: "a")) == .signatureInvalid)
        for key in keys { #expect(verifier.refusal(key.token(.es256)) == nil) }
        #expect(verifier.refusal(keys[2].token(.es256, kid: "c")) == nil, "a key without a name may have any")
    }

    @Test("a token that names no key is tried against so many keys and no more")
    func bounded() async throws {
        let keys = (0..<9).map { _ in SigningKey(for: .edDSA) }
        let set = "{\"keys\":[\(keys.enumerated().map { $1.jwk(kid: "k\($0)") }.joined(separator: ","))]}"
        let verifier = try verifier(set)
        #expect(verifier.refusal(keys[7].token(.edDSA)) == nil)
        #expect(verifier.refusal(keys[8].token(.edDSA)) == .signatureInvalid)
        #expect(verifier.refusal(keys[8].token(.edDSA, kid: "k8")) == nil)
    }

    @Test("the secret in use and those before it")
    func secrets() throws {
        let old = "the secret of last year, which was long"
        let ring = ActiveKeys(
            [TokenForge.secret, old].map {
                VerificationKey(secret: Array($0.utf8), for: SignatureAlgorithm.symmetric)
            })
        let verifier = JWTVerifier(ring)
        for secret in [TokenForge.secret, old] {
            for algorithm in [SignatureAlgorithm.hs256, .hs384, .hs512] {
                let key = SigningKey.secret(Array(secret.utf8))
                #expect(verifier.refusal(key.token(algorithm)) == nil)
                #expect(verifier.refusal(key.token(algorithm, kid: "any")) == nil, "secrets have no names")
            }
        }
        verifier.replaceKeys(ActiveKeys([VerificationKey(secret: Array(old.utf8), for: [.hs256])]))
        let token = SigningKey.secret(Array(TokenForge.secret.utf8)).token(.hs256)
        #expect(verifier.refusal(token) == .signatureInvalid, "what was verified before does not outlive its key")
    }
}
