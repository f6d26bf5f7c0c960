import Hub
import Signatures
import Testing
import Wire

@testable import Push

struct VAPIDTests {
    private static let hour: Int64 = 3_600_000

    private static func key() throws -> VAPIDKey {
        try VAPIDKey(privateKey: "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw", subject: "mailto:ops@example.com")
    }

    /// The claims of a header, after its signature was checked with the key that it names.
    private static func claims(_ header: String?) throws -> JSON {
        let header = try #require(header)
        let match = try #require(header.wholeMatch(of: #/vapid t=([^.]+)\.([^.]+)\.([^,]+), k=(.+)/#))
        let point = try #require(Base64URL.decode(match.4.utf8))
        let key = try #require(PublicKey(.p256, x: Array(point[1...32]), y: Array(point[33...])))
        let signature = try #require(Base64URL.decode(match.3.utf8))
        #expect(key.verifies(signature, of: Array("\(match.1).\(match.2)".utf8), .ecdsa(.sha256)))
        #expect(Base64URL.decode(match.1.utf8) == Array("{\"typ\":\"JWT\",\"alg\":\"ES256\"}".utf8))
        return JSON(trusted: try #require(Base64URL.decode(match.2.utf8))[...])
    }

    @Test func tokensNameTheOriginAndEndWithinADay() throws {
        var tokens = VAPIDTokens(try Self.key())
        let claims = try Self.claims(
            tokens.authorization(for: Name("https://push.example.com"), at: Samples.start)?.text)
        #expect(claims["aud"]?.string == "https://push.example.com")
        #expect(claims["sub"]?.string == "mailto:ops@example.com")
        let left = try #require(claims["exp"]?.int) - Int(Samples.start.unix / 1000)
        #expect((3600...86_400).contains(left))
    }

    @Test func eachOriginHasItsOwnAndKeepsIt() throws {
        var tokens = VAPIDTokens(try Self.key())
        let first = tokens.authorization(for: Name("https://one.example"), at: Samples.start)?.text
        let other = tokens.authorization(for: Name("https://two.example"), at: Samples.start)?.text
        #expect(first != other)
        let later = Samples.start.advanced(by: 6 * Self.hour - 1)
        let same = tokens.authorization(for: Name("https://one.example"), at: later)?.text
        #expect(same == first)
        #expect(tokens.signed == 2)
        let next = tokens.authorization(for: Name("https://one.example"), at: later.advanced(by: 1))?.text
        #expect(next != first)
        #expect(tokens.signed == 3)
    }

    @Test func aClockThatWasSetIsFollowed() throws {
        for shift in [-2 * Self.hour, 7 * Self.hour] {
            var tokens = VAPIDTokens(try Self.key())
            _ = tokens.authorization(for: Name("https://one.example"), at: Samples.start)
            var now = Samples.start.advanced(by: 1000)
            now.unix += shift
            _ = tokens.authorization(for: Name("https://one.example"), at: now)
            #expect(tokens.signed == 2)
        }
    }

    @Test func aServiceWithAnotherClockGetsTokensByThat() throws {
        var tokens = VAPIDTokens(try Self.key())
        let one: Name = "https://one.example"
        let two: Name = "https://two.example"
        let old = tokens.authorization(for: one, at: Samples.start)?.generation ?? 0
        let theirs = Samples.start.unix + 30 * Self.hour
        let mayTry = tokens.expire(old, of: one, date: theirs, at: Samples.start)
        #expect(mayTry)
        let fresh = tokens.authorization(for: one, at: Samples.start)
        let claims = try Self.claims(fresh?.text)
        let left = try #require(claims["exp"]?.int) - Int(theirs / 1000)
        #expect((3600...86_400).contains(left))
        // Others had left with the old one; the next refusal of the new one is not the clock's.
        let mayOthers = tokens.expire(old, of: one, date: theirs, at: Samples.start)
        let mayAgain = tokens.expire(fresh?.generation ?? 0, of: one, date: theirs, at: Samples.start)
        #expect(mayOthers && !mayAgain)
        let other = tokens.authorization(for: two, at: Samples.start)?.generation ?? 0
        let mayOther = [Samples.start.unix + 500, nil].map {
            tokens.expire(other, of: two, date: $0, at: Samples.start)
        }
        #expect(mayOther == [false, false])
    }

    @Test func keysAreWrittenAndReadAlike() throws {
        let made = try #require(VAPIDKey.create())
        let key = try VAPIDKey(privateKey: made.privateText, subject: "https://example.com")
        #expect(key.publicText == made.publicText)
        #expect(made.privateText.count == 43 && made.publicText.count == 87)
        // As other tools pad it.
        #expect(
            try VAPIDKey(privateKey: made.privateText + "=\n", subject: "mailto:a@b.c").publicText == made.publicText)
    }

    @Test(arguments: [
        "", "AAAA", String(repeating: "A", count: 43), "-----BEGIN PRIVATE KEY-----\nno\n-----END PRIVATE KEY-----",
    ])
    func whatIsNoKeyIsSaidInOneSentence(_ text: String) {
        #expect(throws: VAPIDKeyError.key) { try VAPIDKey(privateKey: text, subject: "mailto:a@b.c") }
        #expect(throws: VAPIDKeyError.subject) {
            try VAPIDKey(privateKey: "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw", subject: "ops@example.com")
        }
        #expect(throws: VAPIDKeyError.subject) {
            try VAPIDKey(privateKey: "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw", subject: "mailto:a\"@b.c")
        }
    }
}
