import Push
import Testing

@Suite struct PreviewTests {
    @Test(arguments: [
        ("", ""), ("abcde", "abcde"), ("abcdef", "abcd…"), ("ab cd", "ab cd"), ("abcd e", "abcd…"), ("abc def", "abc…"),
        ("a\nb", "a b"), ("a\r\n\r\n\tb", "a b"), ("  a  ", "a"), ("\n\n", ""), ("a\u{2028}b\u{0}c", "a bc"),
        ("👩‍👩‍👧👩‍👩‍👧👩‍👩‍👧👩‍👩‍👧", "👩‍👩‍👧…"), ("🇩🇪🇫🇷🇮🇹🇪🇸🇵🇹", "🇩🇪🇫🇷🇮🇹…"), ("🇩🇪🇫🇷🇮🇹", "🇩🇪🇫🇷🇮🇹"),
        ("नमस्ते नमस्ते", "नमस्ते…"), ("e\u{301}bcdef", "e\u{301}bcd…"),
    ])
    func cutsToFiveCharacters(_ text: String, _ line: String) {
        #expect(Preview(limit: 5).of(text) == line)
    }

    /// Whatever the text: within the limits, on one line, and made of the text's own characters.
    @Test(arguments: 0..<20) func neverSplitsACharacter(_ seed: Int) {
        var dice = ActivityDice(seed: UInt64(seed))
        let atoms = [
            "a", "é", "e\u{301}", "🇩🇪",
            "👩‍👩‍👧", "👍🏽", "न", "म", "स्ते", " ", "\n", "\r\n", "z\u{300}\u{301}\u{302}", "中", "\"",
            "\\",
        ]
        for _ in 0..<200 {
            let text = (0..<dice.below(40)).map { _ in dice.pick(atoms) }.joined()
            let limit = 1 + dice.below(20)
            let line = Preview(limit: limit).of(text)
            #expect(line.count <= limit)
            #expect(line.utf8.count <= limit * 6 + 3)
            let characters = Array(line.hasSuffix("…") ? line.dropLast() : line[...]).filter { $0 != " " }
            #expect(Array(text).filter { !$0.isWhitespace }.starts(with: characters))
            #expect(line.hasSuffix("…") || characters == Array(text).filter { !$0.isWhitespace })
        }
    }

    @Test func oneEndlessCharacterDoesNotPass() {
        let endless = "a" + String(repeating: "\u{301}", count: 100_000)
        #expect(Preview(limit: 100).of(endless) == "…")
        #expect(Preview(limit: 100).of("b" + endless) == "b…")
    }
}
