import Identity
import Testing
import Wire

/// RFC 8725, sections 2.1 and 3.1: a token must not choose how it is verified.
@Suite struct ConfusionTests {
    @Test("what is public of a key is no HMAC secret", arguments: [SignatureAlgorithm.hs256, .hs384, .hs512])
    func publicKeyAsSecret(_ algorithm: SignatureAlgorithm) async throws {
        guard case .pair(let rsa) = SigningKey.someRSA else { return }
        let (ec, ed) = (KeyPair("P-256"), KeyPair("ED25519"))
        let set = keySet(
            SigningKey.pair(rsa).jwk(kid: "rsa"), SigningKey.pair(ec).jwk(kid: "ec"), SigningKey.pair(ed).jwk(kid: "ed")
        )
        let publicTexts: [[UInt8]] = [
            rsa.publicPEM, rsa.publicPEM + [UInt8(ascii: "\n")], rsa.publicDER, rsa.number("n"),
            Array(SigningKey.pair(rsa).jwk(kid: "rsa").utf8), ec.publicPEM, ec.number("x") + ec.number("y"),
            ed.number("pub"), [], [UInt8](repeating: 0, count: 64),
        ]
        for secret in [nil, TokenForge.secret] {
            let verifier = try verifier(set, secret: secret)
            for bytes in publicTexts {
                for kid in [nil, "rsa", "ec", "ed"] {
                    #expect(verifier.refusal(SigningKey.secret(bytes).token(algorithm, kid: kid)) == .signatureInvalid)
                }
            }
        }
    }

    @Test("a secret's bytes are no public key, and a secret of a set serves only its own algorithm")
    func secretOfASet() async throws {
        let secret = SigningKey(for: .hs256)
        let verifier = try verifier(keySet(secret.jwk(kid: "s", alg: .hs384)))
        #expect(verifier.refusal(secret.token(.hs384, kid: "s")) == nil)
        #expect(verifier.refusal(secret.token(.hs256, kid: "s")) == .signatureInvalid)
        #expect(verifier.refusal(SigningKey.someRSA.token(.rs256, kid: "s")) == .signatureInvalid)
    }

    @Test(
        "no signature is no token",
        arguments: ["none", "None", "NONE", "nOnE", "", "null", "RS256 ", "rs256", "HS256\\u0000"])
    func none(_ name: String) async throws {
        let key = SigningKey.someRSA
        let verifier = try verifier(keySet(key.jwk(kid: "k")), secret: TokenForge.secret)
        for kid in ["", #","kid":"k""#] {
            let header = "{\"alg\":\"\(name)\"\(kid)}"
            #expect(verifier.refusal(key.token(.rs256, header: header)) == .signatureInvalid)
            let unsigned = Base64URL.encode(header.utf8) + "." + Base64URL.encode(TokenForge.payload.utf8) + "."
            #expect(verifier.refusal(unsigned) == .signatureInvalid)
        }
    }

    @Test("a key that comes with the token is not looked at")
    func embedded() async throws {
        let key = SigningKey(for: .es256)
        let mine = SigningKey(for: .es256)
        let verifier = try verifier(keySet(key.jwk(kid: "k")))
        for more in ["\"jwk\":\(mine.jwk())", #""jku":"https://example.com""#, #""x5u":"https://example.com""#] {
            let header = "{\"alg\":\"ES256\",\"kid\":\"k\",\(more)}"
            #expect(verifier.refusal(mine.token(.es256, header: header)) == .signatureInvalid)
            #expect(verifier.refusal(key.token(.es256, header: header)) == nil)
        }
    }

    @Test("a signature of an EC key in DER is none (RFC 7518, section 3.4)")
    func der() async throws {
        let key = SigningKey(for: .es256)
        let verifier = try verifier(keySet(key.jwk(kid: "k")))
        let parts = key.token(.es256, kid: "k").split(separator: ".")
        let raw = try #require(Base64URL.decode(Array(parts[2].utf8)))
        /// An INTEGER of DER: shortest form, and a zero before a bit that would make it negative.
        func integer(_ half: ArraySlice<UInt8>) -> [UInt8] {
            let digits = Array(half.drop { $0 == 0 })
            let bytes = (digits.first ?? 0) >= 0x80 ? [0] + digits : digits
            return [2, UInt8(bytes.count)] + bytes
        }
        let numbers = integer(raw[..<32]) + integer(raw[32...])
        let der = [0x30, UInt8(numbers.count)] + numbers
        #expect(verifier.refusal("\(parts[0]).\(parts[1])." + Base64URL.encode(raw)) == nil)
        #expect(verifier.refusal("\(parts[0]).\(parts[1])." + Base64URL.encode(der)) == .signatureInvalid)
    }
}
