import Testing
import Wire

@Suite struct NameTests {
    /// Texts that Swift's strings call equal, and Postgres does not: one scalar and its parts, an order of two accents, letters that are
    /// others by decree, Hangul.
    static let equivalents = [
        ("Jos\u{E9}", "Jose\u{301}"), ("\u{1E69}", "s\u{307}\u{323}"), ("\u{212A}", "K"), ("\u{2126}", "\u{3A9}"),
        ("\u{37E}", ";"), ("\u{1FEF}", "`"), ("\u{D55C}", "\u{1112}\u{1161}\u{11AB}"),
    ]

    @Test("names with other bytes are other names", arguments: equivalents)
    func otherBytesAreAnotherName(_ one: String, _ other: String) {
        #expect(one == other, "else there is nothing to try")
        #expect(Name(one) != Name(other))
        #expect(Set([Name(one), Name(other), Name(one)]).count == 2)
        #expect([Name(one): 1][Name(other)] == nil)
        #expect((Name(one) < Name(other)) != (Name(other) < Name(one)))
    }

    @Test("names are sorted as the collation C sorts them")
    func areSortedByBytes() {
        let names: [Name] = ["b", "a\u{301}", "\u{E1}", "a", "\u{1F600}", "\u{FFFD}", "Z"]
        #expect(names.sorted().map(\.text) == ["Z", "a", "a\u{301}", "b", "\u{E1}", "\u{FFFD}", "\u{1F600}"])
    }

    @Test("a name of a string from elsewhere is the same name")
    func aStringInWhateverFormIsTheSame() {
        let native = "stream:r\u{E9}ply"
        let piece = Substring("x" + native).dropFirst()
        #expect(Name(piece) == Name(native))
        #expect(Name(piece).hashValue == Name(native).hashValue)
    }
}
