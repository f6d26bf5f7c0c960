import Identity
import Testing
import Wire

@Suite struct JWKSetTests {
    private func read(_ text: String) throws -> JWKSet { try JWKSet(parsing: Array(text.utf8)) }

    @Test("what is not for tokens is skipped, and the rest is used")
    func skips() async throws {
        let good = SigningKey(for: .es256).jwk(kid: "good", #","use":"sig","key_ops":["verify"]"#)
        let others = [
            SigningKey(for: .es256).jwk(#","use":"enc""#),
            SigningKey(for: .es256).jwk(#","key_ops":["encrypt"]"#),
            SigningKey(for: .es256).jwk(alg: .es384), SigningKey(for: .es256).jwk(#","alg":"ECDH-ES""#),
            SigningKey(for: .es256).jwk(#","alg":7"#), SigningKey(for: .es256).jwk(#","kid":7"#),
            SigningKey.someRSA.jwk(#","alg":"RSA-OAEP-256""#), SigningKey.someRSA.jwk(alg: .hs256),
            SigningKey(for: .hs256).jwk(alg: .rs256), SigningKey.pair(KeyPair("RSA", bits: 1024)).jwk(),
            #"{"kty":"EC","crv":"secp256k1","x":"AA","y":"AA"}"#, #"{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}"#,
            #"{"kty":"EC","crv":"P-256"}"#, #"{"kty":"RSA","n":"!","e":"AQAB"}"#, #"{"kty":"RSA"}"#,
            #"{"kty":"OKP","crv":"X25519","x":"AA"}"#, #"{"kty":"OKP","crv":"Ed25519","x":"AA"}"#, #"{"kty":"AKP"}"#,
            #"{"kty":"oct","k":"c2hvcnQ"}"#, #"{"kty":"oct"}"#, "{}", "7", "null", "[]",
            "{\"kty\":\"oct\",\"k\":\"\(Base64URL.encode("-----BEGIN PUBLIC KEY-----\nMIIB".utf8))\"}",
            "{\"kty\":\"RSA\",\"e\":\"AQAB\",\"n\":\"\(String(repeating: "_", count: 4000))\"}",
        ]
        for other in others {
            let set = try read(keySet(other, good))
            #expect(set.keys.map(\.id) == ["good"], "\(other)")
            #expect(set.skipped == 1)
            #expect(throws: KeyProblem.self) { try read(keySet(other)) }
        }
    }

    @Test("a point that is not on the curve is no key")
    func offTheCurve() async throws {
        let one = Base64URL.encode([UInt8](repeating: 1, count: 32))
        #expect(throws: KeyProblem.self) {
            try read(#"{"keys":[{"kty":"EC","crv":"P-256","x":"\#(one)","y":"\#(one)"}]}"#)
        }
    }

    @Test("the algorithms follow from the key")
    func algorithms() async throws {
        func algorithms(_ jwk: String) throws -> Set<SignatureAlgorithm> {
            try read(keySet(jwk)).keys.reduce(into: []) { $0.formUnion($1.algorithms) }
        }
        #expect(
            try algorithms(SigningKey.someRSA.jwk()) == [.rs256, .rs384, .rs512, .ps256, .ps384, .ps512])
        #expect(try algorithms(SigningKey(for: .es384).jwk()) == [.es384])
        #expect(try algorithms(SigningKey(for: .edDSA).jwk()) == [.edDSA])
        #expect(try algorithms(SigningKey(for: .hs256).jwk()) == [.hs256, .hs384, .hs512])
        #expect(try algorithms(SigningKey(for: .hs256).jwk(alg: .hs512)) == [.hs512])
    }

    @Test("private parts do no harm")
    func privateParts() async throws {
        let key = SigningKey(for: .es256)
        let verifier = try verifier(keySet(key.jwk(#","d":"AAAA""#)))
        #expect(verifier.refusal(key.token(.es256)) == nil)
    }

    @Test(
        "what is no key set, in words",
        arguments: [
            ("", "it is not JSON, at byte 0"), ("<html>", "it is not JSON, at byte 0"),
            ("[]", "it is not a JWK Set: an object with an array \"keys\" was expected"),
            ("{}", "it is not a JWK Set: an object with an array \"keys\" was expected"),
            (#"{"keys":{}}"#, "it is not a JWK Set: an object with an array \"keys\" was expected"),
            ("-----BEGIN PUBLIC KEY-----", "it is a PEM file and not a JWK Set; convert the public key to a JWK"),
            ("{\"keys\":[\((0..<101).map { _ in "7" }.joined(separator: ","))]}", "it has more than 100 keys"),
            (
                #"{"keys":[7]}"#,
                "none of its keys can verify a token; RSA, EC, Ed25519 and oct keys for signatures can"
            ),
        ])
    func nonsense(_ text: String, _ problem: String) async throws {
        #expect(throws: KeyProblem(problem)) { try read(text) }
    }
}
