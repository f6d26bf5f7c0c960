import Streams
import TestSupport
import Testing

/// What an operator is shown of a stream's content.
@Suite struct StreamExcerptTests {
    private static func excerpt(_ text: String, _ contentType: String = "text/plain") throws -> [String] {
        let name = try #require(StreamName("a"))
        let stream = StreamBuffer(
            id: StreamID(1), name: name, configuration: StreamConfiguration(contentType: contentType))
        _ = stream.append(Array(text.utf8))
        return stream.makeExcerpt()
    }

    /// In the form of RFC 7515.
    private static let token =
        "eyJhbGciOiJIUzI1NiJ9." + String(repeating: "eyJzdWIiOiJhZGEifQ", count: 20) + ".c2lnbmF0dXJl"

    @Test func theEndOfATextIsShown() throws {
        #expect(try Self.excerpt("") == [])
        #expect(try Self.excerpt("Hello") == ["Hello"])
        let long = String(repeating: "word ", count: 2000) + "end"
        #expect(try Self.excerpt(long) == ["…" + long.suffix(200)])
    }

    @Test func tokensAreHidden() throws {
        #expect(try Self.excerpt("mine is \(Self.token), keep it") == ["mine is ***, keep it"])
    }

    /// Wherever the part that is looked at begins in it: an end of a token is no word.
    @Test func noPartOfATokenIsShown() throws {
        for more in stride(from: 3400, through: 4200, by: 7) {
            let shown = try Self.excerpt("mine is \(Self.token)" + String(repeating: " z", count: more / 2)).joined()
            #expect(shown.hasSuffix(" z") && !shown.contains("c2lnbmF0dXJl"), "\(more) bytes behind it")
        }
    }

    @Test func aTextWithoutSpacesIsShownFromItsNextCharacter() throws {
        let text = String(repeating: "我在写一个很长的回答", count: 500)
        let shown = try #require(try Self.excerpt(text).first)
        #expect(shown == "…" + text.suffix(200))
    }

    @Test func messagesAreShownEachByItself() throws {
        #expect(
            try Self.excerpt(#"{"n":1,"apikey":"open sesame"}"# + "\n2\n", "application/json")
                == [#"{"n":1,"apikey":"***"}"#, "2"])
        let many = (1...2000).map { "{\"n\":\($0)}\n" }.joined()
        #expect(try Self.excerpt(many, "application/json") == (1996...2000).map { "{\"n\":\($0)}" })
        // Of one that is longer than what is looked at nothing is shown, because its secrets have their names at its beginning.
        let long = "{\"token\":\"" + String(repeating: "s", count: 9000) + "\"}\n"
        #expect(try Self.excerpt(long, "application/json") == [])
    }

    @Test func bytesAreNot() throws { #expect(try Self.excerpt("data", "audio/ogg") == []) }
}
