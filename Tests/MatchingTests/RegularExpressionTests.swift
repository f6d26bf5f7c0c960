import Matching
import TestSupport
import Testing

@Suite("What regular expressions may cost")
struct RegularExpressionTests {
    private static func reason(_ pattern: String) -> String? {
        do {
            _ = try RegularExpression(pattern)
            return nil
        } catch {
            return error.reason
        }
    }

    @Test(arguments: [
        "", "a", "^hello$", "^(foo|bar)+$", "[a-z0-9._%+-]+@[a-z0-9.-]+[.][a-z]{2,}", #"^\d{4}-\d{2}-\d{2}$"#,
        #"\mword\M"#,
        #"\yurgent\y"#, "(?:a|b)?c", "a{2}", "a{2,}?", "a{0,30}", "a{,3}", "x{y}", "[]a]", "[^]a]", "[a-]",
        "[[:alpha:]_]+",
        "[[:<:]]go", "[(]", "[)]", #"[\]]"#, #"\("#, #"\\1"#, #"\\\\1"#, #"[\w.]+"#, #"\c(a"#, #"\u0031"#, #"\0"#,
        "é+|ü*",
        "((((((((((a))))))))))", "(a*)*", "(a+)+$", "(a|ab|abc)*x", "^(.*)(.*)(.*)$", "a**", "[à-ü]", "}", "a|", "()",
    ])
    func ordinaryOnesAreServed(pattern: String) {
        #expect(Self.reason(pattern) == nil)
    }

    /// Attack C1: its match takes exponential time.
    @Test(arguments: [
        #"^(.*)(.*)(.*)(.*)(.*)\1\2\3\4\5$"#, #"(a)\1"#, #"(a)\9"#, #"(a)[b\1]"#, #"(a)\12"#, #"\\\1"#, #"(?:(a))\1"#,
        #"(a|\1)"#, #"(a)(?:\1)"#, #"[]\1]"#, #"[^]](a)\1"#, #"[[:alpha:]](a)\1"#, #"\c\(a)\1"#, #"[a\]](a)\1"#,
    ])
    func backReferences(pattern: String) throws {
        #expect(try #require(Self.reason(pattern)).hasPrefix("has a back-reference"))
    }

    @Test(arguments: [
        "(?=.*a)b", "(?!a)b", "(?<=a)b", "(?<!a)b", "a(?=(a))", "(?i)a", "(?b)a", "(?q)(", "(?#comment)a", "a(?#)",
        "(?", "(a(?=b))",
        "(?x)a b", "(?:(?=a))", "[a](?=a)", #"\\(?=a)"#,
    ])
    func lookaroundOptionsAndComments(pattern: String) throws {
        #expect(try #require(Self.reason(pattern)).hasPrefix("has lookahead"))
    }

    @Test(arguments: ["***=a", "***:a", #"***:(a)\1"#, "***"])
    func directorsThatChangeTheFlavour(pattern: String) throws {
        #expect(try #require(Self.reason(pattern)).hasPrefix("begins with ***"))
    }

    private static let overTheirBounds: [(String, String)] = [
        ("a{256}", "repeats more than 255 times"), ("a{256,}", "repeats more than 255 times"),
        ("a{1,256}", "repeats more than 255 times"),
        ("a{99999999999999999999}", "repeats more than 255 times"), ("(a{25}){25}", "is too large"),
        ("((a{10}){10}){10}", "is too large"), ("(((((a{9}){9}){9}){9}){9}){9}", "is too large"),
        ("(((((((((a{255}){255}){255}){255}){255}){255}){255}){255}){255}){255}", "is too large"),
        // As many as a number of 64 bits would wrap around at.
        ("((((((((a{128}){128}){128}){128}){128}){128}){128}){128}){128}", "is too large"),
        ("(a?){41}", "has more than 40 parts"), ("(a*){200}", "has more than 40 parts"),
        ("a{0,100}", "has more than 40 parts"), ("(a{0,10}){0,10}", "has more than 40 parts"),
        ("(|a){41}", "has more than 40 parts"),
        (#"(\y.){9}"#, "has more than 8 anchors"), ("(^a|b$){5}", "has more than 8 anchors"),
        ("[[:<:]][[:>:]]{9}", "has more than 8 anchors"),
        ("[^a]{100}[b-y][c-x][d-w][e-v][f-u][g-t][h-s][i-r][j-q][k-p][l-o]", "is too large"),
        ("[à-ü][á-û][â-ú][ã-ù][ä-ø]", "has more than 4 ranges"),
        (#"[\u0100-\uffff]{2}[\x80-\xff\u0100-\uffff\u0200-\ufff0][à-ü]"#, "has more than 4 ranges"),
        ("(((((((((((a)))))))))))", "has parentheses within parentheses"), ("[[.a.]]", "has a collating element"),
        ("[[=a=]]", "has a collating element"), ("a)", "has a ) without its ("), ("(a", "has a ( without its )"),
        ("[a", "has a [ without its ]"), ("[]", "has a [ without its ]"), ("[^]", "has a [ without its ]"),
        ("[[:alpha:]", "has a [ without its ]"), ("a{2", "has a repetition without its }"),
        (#"a\"#, "ends in a lone backslash"),
        (#"[\"#, "ends in a lone backslash"), (#"\q"#, "has an escape that Postgres does not know"),
        (#"\c"#, "ends within an escape"),
    ]

    @Test(arguments: overTheirBounds) func bounds(pattern: String, reason: String) throws {
        #expect(try #require(Self.reason(pattern)).hasPrefix(reason))
    }

    @Test func length() {
        #expect(Self.reason(String(repeating: "é", count: 256)) == nil)
        #expect(Self.reason(String(repeating: "a", count: 513)) == "is longer than 512 bytes")
    }

    /// Nothing of it recurses without bound or overflows.
    @Test func randomTexts() {
        var random = SeededGenerator(seed: 1)
        let pieces = [
            "(", ")", "[", "]", "\\", "{", "}", ",", "9", "255", "*", "?", ":", "|", "^", "$", "a", "é", "-", "[:",
            ":]", "(?:",
        ]
        for _ in 0..<20_000 {
            let pattern = (0..<Int(random.next() % 60)).map { _ in pieces[Int(random.next() % UInt64(pieces.count))] }
                .joined()
            if let cost = try? RegularExpression(pattern) {
                #expect(
                    cost.size <= RegularExpression.Limits.size && cost.optional <= RegularExpression.Limits.optional)
            }
        }
    }

    @Test(arguments: [
        (#"t=match.^(.*)\1$"#, #"the pattern of filter condition "t=match."^(.*)\\1$"" has a back-reference"#),
        ("t=not.imatch.(?=a)", "the pattern of filter condition \"t=not.imatch.\"(?=a)\"\" has lookahead"),
    ])
    func filtersSayWhatIsWrong(text: String, beginning: String) {
        let message = Fixture.message { _ = try ChangeFilter(parsing: text) }
        #expect(message?.hasPrefix(beginning) == true, "\(message ?? "none")")
    }

    private static let longValues: [(String, String)] = [
        ("t=eq." + String(repeating: "x", count: 2049), "is longer than 2048 bytes"),
        ("t=in.(a," + String(repeating: "x", count: 2049) + ")", "is longer than 2048 bytes"),
        ("t=like." + String(repeating: "x", count: 257), "is longer than 256 bytes"),
        ("t=ilike." + String(repeating: "%x", count: 21), "has more than 20 %"),
        (Array(repeating: "a=eq.1", count: 21).joined(separator: ","), "has more than 20 conditions"),
        (
            "t=in.(" + Array(repeating: String(repeating: "x", count: 200), count: 99).joined(separator: ",") + ")",
            "is longer than 16384 bytes"
        ),
    ]

    @Test(arguments: longValues) func otherValuesAreBounded(text: String, reason: String) {
        let message = Fixture.message { _ = try ChangeFilter(parsing: text) }
        #expect(message?.contains(reason) == true, "\(message ?? "none")")
    }

    @Test func aSwitchRefusesAllOfThem() throws {
        for (filter, isRefused) in [("t=match.a", true), ("id=eq.1,t=not.imatch.a", true), ("t=ilike.a", false)] {
            let entry = try Fixture.json(#"{"event":"*","schema":"public","table":"t","filter":"\#(filter)"}"#)
            let message = Fixture.message { _ = try ChangeBinding(entry, expressions: false).parameters.get() }
            #expect((message?.contains("limits.regular_expressions") == true) == isRefused)
            #expect(Fixture.message { _ = try ChangeBinding(entry).parameters.get() } == nil)
        }
    }
}
