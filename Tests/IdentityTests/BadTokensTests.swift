import Foundation
import Identity
import TestSupport
import Testing
import Wire

/// Ten thousand bad tokens. Each is made in a way that says which refusal it must get.
@Suite struct BadTokensTests {
    /// One signer, its token good in every respect, and the parts of that.
    private struct Signer {
        let algorithm: SignatureAlgorithm
        let kid: String?
        let key: SigningKey
        let stranger: SigningKey

        func token(_ payload: String = BadTokensTests.payload, header: String? = nil) -> String {
            key.token(algorithm, payload, kid: kid, header: header)
        }

        var header: String {
            "{\"alg\":\"\(algorithm.rawValue)\",\"typ\":\"JWT\"" + (kid.map { ",\"kid\":\"\($0)\"" } ?? "")
        }
    }

    private static let members = #""role":"anon","iss":"https://a","aud":"app","iat":1000"#
    private static let payload = "{\(members),\"exp\":4000000000}"

    private static func signers() -> [Signer] {
        SignatureAlgorithm.allCases.map { algorithm in
            if algorithm.isSymmetric {
                return Signer(
                    algorithm: algorithm, kid: nil, key: .secret(Array(TokenForge.secret.utf8)),
                    stranger: SigningKey(for: algorithm))
            }
            let key = SigningKey(for: algorithm)
            let stranger = SigningKey.another(for: algorithm)
            return Signer(algorithm: algorithm, kid: "the-\(algorithm.rawValue)", key: key, stranger: stranger)
        }
    }

    @Test func tenThousandAreRefusedWithTheRightText() async throws {
        let signers = Self.signers()
        let jwks = signers.filter { $0.kid != nil }.map { $0.key.jwk(kid: $0.kid, alg: $0.algorithm) }
        let verifier = try verifier(
            "{\"keys\":[\(jwks.joined(separator: ","))]}", secret: TokenForge.secret,
            rules: ClaimRules(issuers: ["https://a"], audiences: ["app"]))
        let good = signers.map { $0.token() }
        for (signer, token) in zip(signers, good) {
            #expect(verifier.refusal(token) == nil, "\(signer.algorithm) is good before it is spoilt")
        }
        var random = SeededGenerator(seed: 7519)
        var counts: [String: Int] = [:]
        for number in 0..<10_000 {
            let index = random.below(signers.count)
            let (token, expected) = try Self.spoil(good[index], signers[index], number, &random)
            let refusal = verifier.refusal(token)
            counts["\(expected)".prefix { $0 != "(" }.description, default: 0] += 1
            if refusal != expected {
                Issue.record(
                    "\(number) \(signers[index].algorithm): \(String(describing: refusal)), not \(expected): \(token)")
            }
        }
        #expect(counts.count == 9, "every refusal of a token was asked for: \(counts)")
        for token in good { #expect(verifier.refusal(token) == nil, "and the good ones still are") }
    }

    private static func spoil(
        _ good: String, _ signer: Signer, _ number: Int, _ random: inout SeededGenerator
    ) throws -> (String, Refusal) {
        let parts = good.split(separator: ".").map(String.init)
        let bytes = Array(good.utf8)
        let (header, rest) = (signer.header, ",\"exp\":4000000000}")
        switch number % 24 {
        case 0: return cut(good, to: random.below(bytes.count))
        case 1: return (signer.stranger.token(signer.algorithm, payload, kid: signer.kid), .signatureInvalid)
        case 2:
            let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.".utf8)
            return (
                String((0..<random.below(300)).map { _ in Character(UnicodeScalar(random.pick(alphabet))) }),
                .tokenMalformed
            )
        case 3:
            var signature = try #require(Base64URL.decode(Array(parts[2].utf8)))
            signature[random.below(signature.count)] ^= 1 << UInt8(random.below(8))
            return ("\(parts[0]).\(parts[1]).\(Base64URL.encode(signature))", .signatureInvalid)
        case 4:
            let other = "{\"role\":\"service_role\",\"n\":\(number)" + rest
            return ("\(parts[0]).\(Base64URL.encode(other.utf8)).\(parts[2])", .signatureInvalid)
        case 5:
            let late = random.below(1999)
            return (signer.token("{\(members),\"exp\":\(2000 - late)}"), .tokenExpired(secondsAgo: late))
        case 6:
            // Signed by who may, under another algorithm's name.
            let names = SignatureAlgorithm.allCases.filter { $0 != signer.algorithm && !$0.isSymmetric }
            let name = random.pick(names)
            let kid = signer.kid.map { ",\"kid\":\"\($0)\"" } ?? ""
            return (signer.token(header: "{\"alg\":\"\(name.rawValue)\"\(kid)}"), .signatureInvalid)
        case 7:
            let name = random.pick(["none", "None", "NONE", "nOnE", "", "HS1", "RS1", "ES256K", "EdDSA ", "es256"])
            let head = Base64URL.encode("{\"alg\":\"\(name)\"}".utf8)
            return ("\(head).\(parts[1]).\(random.below(2) == 0 ? "" : parts[2])", .signatureInvalid)
        case 8:
            let payload = random.pick([
                "{\"role\":\"anon\"}", "{\"exp\":4000000000}", "{}", "{\"role\":7,\"exp\":4000000000}",
                "{\"role\":\"\",\"exp\":4000000000}",
            ])
            return (signer.token(payload), .claimsMissing)
        case 9:
            let value = random.pick(["\"4000000000\"", "null", "true", "-1", "0", "1e999", "[]", "{}"])
            return (signer.token("{\(members),\"exp\":\(value)}"), .expirationInvalid)
        case 10:
            let name = random.pick(["iat", "nbf"])
            let value = random.pick(["\"1000\"", "null", "true", "[1000]", "{}"])
            return (signer.token("{\(members),\"\(name)\":\(value)" + rest), .tokenMalformed)
        case 11:
            return (signer.token("{\(members),\"nbf\":\(2031 + random.below(1_000_000))" + rest), .tokenNotYetValid)
        case 12:
            let issuer = random.pick(["\"https://b\"", "\"\"", "null", "7", "[\"https://a\"]", "\"https://a/\""])
            return (signer.token("{\"role\":\"anon\",\"aud\":\"app\",\"iss\":\(issuer)" + rest), .issuerRefused)
        case 13:
            let audience = random.pick(["\"App\"", "\"\"", "null", "7", "[]", "[\"other\"]", "{\"app\":1}"])
            return (
                signer.token("{\"role\":\"anon\",\"iss\":\"https://a\",\"aud\":\(audience)" + rest),
                .audienceRefused
            )
        case 14:
            let asymmetric = signer.algorithm.isSymmetric ? SignatureAlgorithm.es256 : signer.algorithm
            let key = signer.algorithm.isSymmetric ? SigningKey(for: .es256) : signer.key
            return (key.token(asymmetric, payload, kid: "nobody-\(number)"), .keyUnknown)
        case 15:
            let odd: [UInt8] = random.pick([[0x20], [0x3D], [0x2B], [0x2F], [0x0A], [0], [0xC3, 0xA9], [0xFF], [0x7F]])
            var changed = bytes
            changed.insert(contentsOf: odd, at: random.below(bytes.count + 1))
            return (String(decoding: changed, as: UTF8.self), .tokenMalformed)
        case 16: return (good + "." + random.pick(["", parts[0], parts[2]]), .tokenMalformed)
        case 17:
            // A key of the set, used as a secret.
            let rsa = Array(SigningKey.someRSA.jwk().utf8)
            let kid = random.pick([nil, "the-RS256", "the-ES256"])
            return (SigningKey.secret(rsa).token(.hs256, payload, kid: kid), .signatureInvalid)
        case 18:
            let value = random.pick(["[\"exp\"]", "[]", "null", "\"b64\""])
            return (signer.token(header: "\(header),\"crit\":\(value)}"), .signatureInvalid)
        case 19:
            let text = random.pick(["", "[]", "7", "null", "\"x\"", "{", "{\"alg\":}", "{\"a\":1,}", "\u{FEFF}{}"])
            let signed = random.below(2) == 0 ? signer.token(text) : signer.token(header: text)
            return (signed, .tokenMalformed)
        case 20:
            // The signature's length is what the algorithm says, its bytes are not.
            let count = try #require(Base64URL.decode(Array(parts[2].utf8))).count
            let fill = (0..<count).map { _ in UInt8(random.below(256)) }
            return ("\(parts[0]).\(parts[1]).\(Base64URL.encode(fill))", .signatureInvalid)
        case 21:
            let fill = [UInt8](repeating: UInt8(random.pick([0, 255])), count: random.below(700))
            return ("\(parts[0]).\(parts[1]).\(Base64URL.encode(fill))", .signatureInvalid)
        case 22:
            // Another good token's signature.
            let other = signer.token("{\(members),\"n\":\(number)" + rest).split(separator: ".")
            return ("\(parts[0]).\(parts[1]).\(other[2])", .signatureInvalid)
        default:
            // An end that decodes to the same bytes with a lax decoder.
            let spare = (try #require(Base64URL.decode(Array(parts[2].utf8)))).count % 3
            guard spare != 0 else { return (good + "=", .tokenMalformed) }
            let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
            let last = try #require(alphabet.firstIndex { $0 == good.last })
            return (String(good.dropLast()) + String(alphabet[last + 1]), .tokenMalformed)
        }
    }

    /// Of a token that ends too early: with its three parts it has a wrong signature, or one that is no base 64.
    private static func cut(_ good: String, to count: Int) -> (String, Refusal) {
        let text = String(good.prefix(count))
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3 else { return (text, .tokenMalformed) }
        let padded =
            String(parts[2]).replacing("-", with: "+").replacing("_", with: "/")
            + String(repeating: "=", count: (4 - parts[2].count % 4) % 4)
        let again = Data(base64Encoded: padded)?.base64EncodedString()
        return (text, again == padded ? .signatureInvalid : .tokenMalformed)
    }
}
