import CTestKeys
import Foundation
import Testing

@testable import Push

struct ProviderKeyTests {
    let pem = Samples.privatePEM

    @Test func takesLineBreaksAsAnEnvironmentVariableHasThem() throws {
        for text in [
            pem, pem.replacing("\n", with: "\\n"), pem.replacing("\n", with: "\r\n"), "  " + pem + "\n\n",
            pem.replacing("\n", with: "\n   "),
        ] {
            let key = try ProviderKey(teamID: "TEAM567890", keyID: "KEY4567890", pem: text)
            #expect(isSigned(try #require(key.key.signature(of: [1, 2, 3])), [1, 2, 3]))
        }
    }

    @Test func saysWhatIsWrongAndNeverTheKey() throws {
        let secret = pem.split(separator: "\n")[1]
        let other = Samples.pem("P-384")
        let cases: [(String, String, String, ProviderKeyError)] = [
            ("TEAM", "KEY4567890", pem, .team), ("TEAM56789.", "KEY4567890", pem, .team),
            ("TEAM567890", "", pem, .keyID), ("TEAM567890", "KEY4567890", " ", .empty),
            ("TEAM567890", "KEY4567890", String(secret), .notPEM), ("TEAM567890", "KEY4567890", other, .unusable),
            ("TEAM567890", "KEY4567890", String(pem.prefix(80)), .unusable),
        ]
        for (team, id, text, expected) in cases {
            #expect(throws: expected) { try ProviderKey(teamID: team, keyID: id, pem: text) }
            #expect(!"\(expected)".contains(secret.prefix(10)) && "\(expected)".hasSuffix("."))
        }
    }

    /// The token, taken apart by Foundation and checked with the public key.
    @Test func signsAsAppleWants() throws {
        let token = try ProviderToken(signedBy: Samples.key(), issuedAt: 1_790_000_000, generation: 1)
        let parts = token.jwt.split(separator: ".").map(String.init)
        let decoded = try parts.map { part in
            let text = part.replacing("-", with: "+").replacing("_", with: "/")
            return try #require(Data(base64Encoded: text + String(repeating: "=", count: (4 - text.count % 4) % 4)))
        }
        #expect(decoded[0] == Data("{\"alg\":\"ES256\",\"kid\":\"KEY4567890\"}".utf8))
        #expect(decoded[1] == Data("{\"iss\":\"TEAM567890\",\"iat\":1790000000}".utf8))
        #expect(decoded[2].count == 64)
        #expect(isSigned(Array(decoded[2]), Array((parts[0] + "." + parts[1]).utf8)))
    }

    private func isSigned(_ signature: [UInt8], _ bytes: [UInt8]) -> Bool {
        let key = roost_key_p256_pem(pem, pem.utf8.count)
        defer { roost_key_free(key) }
        return roost_key_verify(key, ROOST_ECDSA, ROOST_SHA256, signature, signature.count, bytes, bytes.count)
    }
}
