import Testing
import Wire

@Suite struct JSONStringTests {
    @Test(arguments: [
        (#"plain é😀"#, "plain é😀"), (#"\"\\\/\b\f\n\r\t"#, "\"\\/\u{8}\u{C}\n\r\t"), (#"\u0041\u00e9\u20AC"#, "Aé€"),
        (#"\uD83D\uDE00"#, "😀"), (#"a\uD83D\uDE00b"#, "a😀b"), (#"\uD83D"#, "\u{FFFD}"),
        (#"\uDE00\uD83D"#, "\u{FFFD}\u{FFFD}"),
        (#"\uD83Dx\uDE00"#, "\u{FFFD}x\u{FFFD}"), (#"\uD83D\n"#, "\u{FFFD}\n"), (#"\u0000"#, "\u{0}"),
        (#"\\u0041"#, #"\u0041"#),
        (#"e\u0301"#, "e\u{301}"), ("", ""),
    ])
    func decodes(_ raw: String, to text: String) throws {
        let decoded = JSONString.decode(Array(raw.utf8)[...])
        #expect(Array(decoded.unicodeScalars) == Array(text.unicodeScalars))
        #expect(try JSON(parsing: Array("\"\(raw)\"".utf8)).string.map { Array($0.utf8) } == Array(decoded.utf8))
    }

    @Test func encodesWhatMustBeEscapedAndNothingElse() {
        let cases = [
            ("", #""""#), ("a\"b\\c/", #""a\"b\\c/""#), ("\n\r\t", #""\n\r\t""#),
            ("\u{0}\u{8}\u{1F}", #""\u0000\u0008\u001f""#),
            ("é😀\u{7F}\u{2028}", "\"é😀\u{7F}\u{2028}\""),
        ]
        for (text, json) in cases { #expect(String(decoding: JSONString.encode(text), as: UTF8.self) == json) }
    }

    @Test func everyScalarSurvivesTheRoundTrip() throws {
        for value in UInt32(0)...0x10FFFF {
            guard let scalar = Unicode.Scalar(value) else { continue }
            let text = String(scalar)
            let encoded = JSONString.encode(text)
            #expect(JSONString.encodedCount(text) == encoded.count)
            let decoded = JSONString.decode(encoded[1..<(encoded.count - 1)])
            if decoded.unicodeScalars.first != scalar || decoded.unicodeScalars.count != 1 {
                Issue.record("U+\(String(value, radix: 16))")
            }
        }
        let every = String(String.UnicodeScalarView((UInt32(0)...0xFFFF).compactMap(Unicode.Scalar.init)))
        #expect(try JSON(parsing: JSONString.encode(every)).string.map { Array($0.utf8) } == Array(every.utf8))
    }
}
