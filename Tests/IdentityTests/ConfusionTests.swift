import Crypto
import CryptoExtras
import Identity
import Testing
import Wire

/// RFC 8725, sections 2.1 and 3.1: a token must not choose how it is verified.
@Suite struct ConfusionTests {
    @Test("what is public of a key is no HMAC secret", arguments: [SignatureAlgorithm.hs256, .hs384, .hs512])
    func publicKeyAsSecret(_ algorithm: SignatureAlgorithm) async throws {
        guard case .rsa(let rsa) = SigningKey.someRSA else { return }
        let ec = P256.Signing.PrivateKey()
        let ed = Curve25519.Signing.PrivateKey()
        let set = keySet(
            try SigningKey.someRSA.jwk(kid: "rsa"), try SigningKey.p256(ec).jwk(kid: "ec"),
            try SigningKey.ed25519(ed).jwk(kid: "ed"))
        let pem = rsa.publicKey.pemRepresentation
        let publicTexts: [[UInt8]] = [
            Array(pem.utf8), Array((pem + "\n").utf8), Array(rsa.publicKey.derRepresentation),
            Array(try rsa.publicKey.getKeyPrimitives().modulus), Array(try SigningKey.someRSA.jwk(kid: "rsa").utf8),
            Array(ec.publicKey.pemRepresentation.utf8), Array(ec.publicKey.rawRepresentation),
            Array(ed.publicKey.rawRepresentation), [], [UInt8](repeating: 0, count: 64),
        ]
        for secret in [nil, TokenForge.secret] {
            let gate = try await gate(set, secret: secret)
            for bytes in publicTexts {
                for kid in [nil, "rsa", "ec", "ed"] {
                    #expect(gate.refusal(try SigningKey.secret(bytes).token(algorithm, kid: kid)) == .signatureInvalid)
                }
            }
        }
    }

    @Test("a secret's bytes are no public key, and a secret of a set serves only its own algorithm")
    func secretOfASet() async throws {
        let secret = SigningKey(for: .hs256)
        let gate = try await gate(keySet(try secret.jwk(kid: "s", alg: .hs384)))
        #expect(gate.refusal(try secret.token(.hs384, kid: "s")) == nil)
        #expect(gate.refusal(try secret.token(.hs256, kid: "s")) == .signatureInvalid)
        #expect(gate.refusal(try SigningKey.someRSA.token(.rs256, kid: "s")) == .signatureInvalid)
    }

    @Test(
        "no signature is no token",
        arguments: ["none", "None", "NONE", "nOnE", "", "null", "RS256 ", "rs256", "HS256\\u0000"])
    func none(_ name: String) async throws {
        let key = SigningKey.someRSA
        let gate = try await gate(keySet(try key.jwk(kid: "k")), secret: TokenForge.secret)
        for kid in ["", #","kid":"k""#] {
            let header = "{\"alg\":\"\(name)\"\(kid)}"
            #expect(gate.refusal(try key.token(.rs256, header: header)) == .signatureInvalid)
            let unsigned = Base64URL.encode(header.utf8) + "." + Base64URL.encode(TokenForge.payload.utf8) + "."
            #expect(gate.refusal(unsigned) == .signatureInvalid)
        }
    }

    @Test("a key that comes with the token is not looked at")
    func embedded() async throws {
        let key = SigningKey(for: .es256)
        let mine = SigningKey(for: .es256)
        let gate = try await gate(keySet(try key.jwk(kid: "k")))
        for more in ["\"jwk\":\(try mine.jwk())", #""jku":"https://example.com""#, #""x5u":"https://example.com""#] {
            let header = "{\"alg\":\"ES256\",\"kid\":\"k\",\(more)}"
            #expect(gate.refusal(try mine.token(.es256, header: header)) == .signatureInvalid)
            #expect(gate.refusal(try key.token(.es256, header: header)) == nil)
        }
    }

    @Test("a signature of an EC key in DER is none (RFC 7518, section 3.4)")
    func der() async throws {
        let key = P256.Signing.PrivateKey()
        let gate = try await gate(keySet(try SigningKey.p256(key).jwk(kid: "k")))
        let signed = try SigningKey.p256(key).token(.es256, kid: "k").split(separator: ".").prefix(2).joined(
            separator: ".")
        let der = try key.signature(for: Array(signed.utf8)).derRepresentation
        #expect(gate.refusal(signed + "." + Base64URL.encode(der)) == .signatureInvalid)
    }
}
