import Identity
import Testing
import Wire

@Suite struct AlgorithmTests {
    @Test("a key of each kind verifies what it signed", arguments: SignatureAlgorithm.allCases)
    func verifies(_ algorithm: SignatureAlgorithm) async throws {
        let key = SigningKey(for: algorithm)
        for limit in [nil, algorithm] {
            let gate = try gate(keySet(key.jwk(kid: "k", alg: limit)))
            let token = key.token(algorithm, kid: "k")
            #expect(try gate.verify(token, at: testTime).subject == "u1")
            #expect(try gate.verify(token, at: testTime) === gate.verify(token, at: testTime))
            #expect(gate.refusal(key.token(algorithm)) == nil, "a token need not name its key")
        }
    }

    @Test("and not what another one signed", arguments: SignatureAlgorithm.allCases)
    func refuses(_ algorithm: SignatureAlgorithm) async throws {
        let key = SigningKey(for: algorithm)
        let stranger = SigningKey.another(for: algorithm)
        let gate = try gate(keySet(key.jwk(kid: "k")))
        #expect(gate.refusal(stranger.token(algorithm, kid: "k")) == .signatureInvalid)
        #expect(gate.refusal(stranger.token(algorithm)) == .signatureInvalid)
        #expect(gate.refusal(stranger.token(algorithm, kid: "other")) == .keyUnknown)
        let parts = key.token(algorithm, kid: "k").split(separator: ".")
        #expect(gate.refusal("\(parts[0]).\(parts[1]).") == .signatureInvalid, "no signature")
        #expect(gate.refusal("\(parts[0]).\(parts[1]).\(parts[2])AAAA") == .signatureInvalid, "a longer signature")
    }

    @Test("a key with `alg` serves that algorithm only")
    func limited() async throws {
        let key = SigningKey.someRSA
        let gate = try gate(keySet(key.jwk(kid: "k", alg: .rs384)))
        for algorithm in SignatureAlgorithm.allCases
        where algorithm.rawValue.hasPrefix("RS") || algorithm.rawValue.hasPrefix("PS") {
            let expected: Refusal? = algorithm == .rs384 ? nil : .signatureInvalid
            #expect(gate.refusal(key.token(algorithm, kid: "k")) == expected, "\(algorithm)")
            #expect(gate.refusal(key.token(algorithm)) == expected, "\(algorithm)")
        }
    }

    @Test("the allow list limits every key, secrets too")
    func allowed() async throws {
        let rsa = SigningKey.someRSA
        let secret = SigningKey.secret(Array(TokenForge.secret.utf8))
        let gate = try gate(
            keySet(rsa.jwk(kid: "k")), secret: TokenForge.secret, allowing: [.hs512, .ps256])
        #expect(gate.refusal(secret.token(.hs512)) == nil)
        #expect(gate.refusal(secret.token(.hs256)) == .signatureInvalid)
        #expect(gate.refusal(rsa.token(.ps256, kid: "k")) == nil)
        #expect(gate.refusal(rsa.token(.rs256, kid: "k")) == .signatureInvalid)
    }

    @Test("several keys at once: the name selects, and without a name all are tried")
    func rotation() async throws {
        let keys = (0..<3).map { _ in SigningKey(for: .es256) }
        let set = keySet(keys[0].jwk(kid: "a"), keys[1].jwk(kid: "b"), keys[2].jwk())
        let gate = try gate(set)
        #expect(gate.refusal(keys[0].token(.es256, kid: "a")) == nil)
        #expect(gate.refusal(keys[1].token(.es256, kid: "b")) == nil)
        #expect(gate.refusal(keys[1].token(.es256, kid: "a")) == .signatureInvalid)
        for key in keys { #expect(gate.refusal(key.token(.es256)) == nil) }
        #expect(gate.refusal(keys[2].token(.es256, kid: "c")) == nil, "a key without a name may have any")
    }

    @Test("a token that names no key is tried against so many keys and no more")
    func bounded() async throws {
        let keys = (0..<9).map { _ in SigningKey(for: .edDSA) }
        let set = "{\"keys\":[\(keys.enumerated().map { $1.jwk(kid: "k\($0)") }.joined(separator: ","))]}"
        let gate = try gate(set)
        #expect(gate.refusal(keys[7].token(.edDSA)) == nil)
        #expect(gate.refusal(keys[8].token(.edDSA)) == .signatureInvalid)
        #expect(gate.refusal(keys[8].token(.edDSA, kid: "k8")) == nil)
    }

    @Test("the secret in use and those before it")
    func secrets() throws {
        let old = "the secret of last year, which was long"
        let ring = KeyRing(
            [TokenForge.secret, old].map {
                VerificationKey(secret: Array($0.utf8), for: SignatureAlgorithm.symmetric)
            })
        let gate = TokenGate(ring)
        for secret in [TokenForge.secret, old] {
            for algorithm in [SignatureAlgorithm.hs256, .hs384, .hs512] {
                let key = SigningKey.secret(Array(secret.utf8))
                #expect(gate.refusal(key.token(algorithm)) == nil)
                #expect(gate.refusal(key.token(algorithm, kid: "any")) == nil, "secrets have no names")
            }
        }
        gate.replace(KeyRing([VerificationKey(secret: Array(old.utf8), for: [.hs256])]))
        let token = SigningKey.secret(Array(TokenForge.secret.utf8)).token(.hs256)
        #expect(gate.refusal(token) == .signatureInvalid, "what was verified before does not outlive its key")
    }
}
