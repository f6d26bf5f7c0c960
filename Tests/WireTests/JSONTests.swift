import Testing
import Wire

@Suite struct JSONTests {
    private func json(_ text: String) throws -> JSON { try JSON(parsing: Array(text.utf8)) }

    /// Where parsing stops; nil where it does not.
    private func defect(_ bytes: ArraySlice<UInt8>) -> Int? {
        do {
            _ = try JSON(parsing: bytes)
            return nil
        } catch {
            return error.offset
        }
    }

    // MARK: What is taken for JSON without a look

    /// How many values there are, each of which takes a byte.
    private func count(_ json: JSON, _ depth: Int = 0) -> Int {
        _ = (json.string, json.int, Excerpt.makeText(json))
        guard depth < 20 else { return 1 }
        var sum = json.elements.reduce(1) { $0 + count($1, depth + 1) }
        json.forEachMember { sum += $0.key.isEmpty ? 1 : count($0.value, depth + 1) }
        return sum
    }

    @Test(arguments: [#"{"a":[1,{"b":"\u00e9\""}],"c":null}"#, #"[[],{},"a",-1.5e3 , true]"#, #"{"":{"":""}}"#])
    func wrongTrustEndsNothing(_ text: String) {
        let whole = Array(text.utf8)
        for at in whole.indices {
            var inputs = [whole[..<at], whole[at...]]
            for byte in "{}[]\",:\\ 0u\n".utf8 {
                var bytes = whole
                bytes[at] = byte
                inputs.append(bytes[...])
                bytes.insert(byte, at: at)
                inputs.append(bytes[..<(at + 1)])
            }
            for input in inputs {
                let json = JSON(trusted: input)
                #expect(count(json) <= 2 * input.count + 1)
                _ = json.isEqual(to: JSON(trusted: whole[...]))
            }
        }
    }

    @Test(arguments: ["{\"", "[}", #"{"a""#, #"{"a":"#, #"{"a":}"#, #"{"a":[}"#, "[,,", #"["\"#])
    func wrongTrustEndsAList(_ text: String) {
        #expect(count(JSON(trusted: Array(text.utf8)[...])) <= text.utf8.count)
    }

    /// Deeper than the stack allows.
    @Test func whatWasNotCheckedIsNotComparedToItsEnd() {
        func nested(_ inner: String) -> JSON {
            let depth = 100_000
            let text = String(repeating: "[", count: depth) + inner + String(repeating: "]", count: depth)
            return JSON(trusted: Array(text.utf8)[...])
        }
        #expect(!nested("1").isEqual(to: nested("2")))
        #expect(nested("1").isEqual(to: nested("1")))
    }

    // MARK: What is JSON (RFC 8259)

    @Test(arguments: [
        "null", "true", "false", "0", "-0", "7", "-12", "0.5", "1e5", "1E+5", "1e-05", "-0.0e0",
        "123456789012345678901234567890",
        #""""#, #""a""#, #""\"\\\/\b\f\n\r\t""#, #""é😀""#, #""\u0041\uD83D\uDE00\ud800""#, "\"\u{7F}\"", "[]", "[ ]",
        "{}",
        "{ }", "[1,2]", "[[],{}]", #"{"a":1}"#, #"{"a":1,"a":2}"#, #"{"":{}}"#, " \t\r\n[ 1 , 2 ]\n",
        #" { "a" : [ ] } "#,
    ])
    func accepts(_ text: String) throws {
        let value = try json(text)
        #expect(value.description == text.trimmingSpace())
    }

    @Test(arguments: [
        ("", 0), (" ", 1), ("nul", 3), ("nulL", 3), ("TRUE", 0), ("undefined", 0), ("NaN", 0), ("Infinity", 0),
        ("-Infinity", 1),
        ("01", 1), ("-", 1), ("+1", 0), (".5", 0), ("1.", 2), ("1.e5", 2), ("1e", 2), ("1e+", 3), ("0x10", 1),
        ("--1", 1),
        ("1 2", 2), ("[", 1), ("[1", 2), ("[1,", 3), ("[1,]", 3), ("[,1]", 1), ("[1 2]", 3), ("]", 0), ("[}", 1),
        ("{", 1),
        ("{]", 1), ("{1:2}", 1), ("{a:1}", 1), ("{'a':1}", 1), (#"{"a"}"#, 4), (#"{"a":}"#, 5), (#"{"a":1,}"#, 7),
        (#"{"a":1 "b":2}"#, 7), (#"{"a" 1}"#, 5), (#"{"a":1"#, 6), (#"""#, 1), (#""abc"#, 4), (#""\""#, 3),
        (#""\x""#, 2),
        (#""\u12""#, 5), (#""\u12g4""#, 5), (#""\"#, 2), ("\"\n\"", 1), ("\"\t\"", 1), ("\"\u{0}\"", 1),
        ("\"\u{1F}\"", 1),
        ("\u{FEFF}{}", 0), ("\u{A0}1", 0), ("1\u{0}", 1), ("[1]]", 3), ("{}{}", 2), ("/* */1", 0), ("[1]//", 3),
        ("\u{B}1", 0),
    ])
    func refuses(_ text: String, offset: Int) {
        #expect(defect(Array(text.utf8)[...]) == offset)
    }

    @Test func nestsToTheLimitAndNoDeeper() throws {
        func nested(_ depth: Int, _ open: String, _ core: String, _ close: String) -> String {
            String(repeating: open, count: depth) + core + String(repeating: close, count: depth)
        }
        let limit = JSONScanner.depthLimit
        for (open, core, close) in [("[", "", "]"), ("[", "1", "]"), ("{\"a\":", "{}", "}"), ("[{\"a\":", "[]", "}]")] {
            let levels = open.filter { "[{".contains($0) }.count
            let own = core.isEmpty || core == "1" ? 0 : 1
            let deepest = nested((limit - own) / levels, open, core, close)
            #expect(throws: Never.self) { try json(deepest) }
            #expect(throws: JSON.SyntaxError.self, "\(open)") { try json("[" + open + deepest + close + "]") }
        }
        #expect(defect(Array(nested(limit + 1, "[", "", "]").utf8)[...]) == limit)
        #expect(throws: JSON.SyntaxError.self) { try json(String(repeating: "[", count: 1_000_000)) }
    }

    // MARK: Values

    @Test func knowsKinds() throws {
        let kinds: [(String, JSON.Kind)] = [
            ("{}", .object), ("[]", .array), ("\"\"", .string), ("-1", .number), ("0", .number), ("true", .bool),
            ("false", .bool), ("null", .null),
        ]
        for (text, kind) in kinds { #expect(try json(text).kind == kind) }
        #expect(try json("null").isNull)
        #expect(try !json("\"null\"").isNull)
    }

    @Test func readsScalars() throws {
        #expect(try json("true").bool == true)
        #expect(try json("false").bool == false)
        #expect(try json("\"true\"").bool == nil)
        #expect(try json("-42").int == -42)
        #expect(try json("9223372036854775807").int == .max)
        #expect(try json("9223372036854775808").int == nil)
        #expect(try json("1.0").int == nil)
        #expect(try json("\"1\"").int == nil)
        #expect(try json("-1.5e2").double == -150)
        #expect(try json("\"1\"").double == nil)
        #expect(try json("1").string == nil)
    }

    @Test func walksArrays() throws {
        let all = try json(#" [ 1 ,"a,]\"", [2,[3]] ,{"k":[4]},null, -5e1 ] "#).elements
        #expect(all.map(\.description) == ["1", #""a,]\"""#, "[2,[3]]", #"{"k":[4]}"#, "null", "-5e1"])
        #expect(try json("[]").elements.isEmpty)
        #expect(try json("[ \n ]").elements.isEmpty)
        #expect(try json(#"{"a":1}"#).elements.isEmpty)
        #expect(try json("7").elements.isEmpty)
    }

    @Test func walksObjects() throws {
        var seen: [String] = []
        try json(#" { "a" : 1 ,"b\n":{"x":"}"}, "" :[ ],"a":"last"} "#).forEachMember {
            seen.append("\($0.key)=\($0.value)")
        }
        #expect(seen == ["a=1", "b\n={\"x\":\"}\"}", "=[ ]", "a=\"last\""])
        try json("[1]").forEachMember { _ in Issue.record("an array has no members") }
    }

    @Test func findsMembers() throws {
        let object = try json(#"{"a":1,"b":{"a":2},"a":3,"\u0063":4}"#)
        #expect(object["a"]?.int == 3, "the last of equal keys counts")
        #expect(object["b"]?["a"]?.int == 2)
        #expect(object["c"]?.int == 4, "a key may be written with escapes")
        #expect(object["d"] == nil)
        #expect(object["A"] == nil)
        #expect(try json("[1]")["a"] == nil)
    }

    @Test func keysThatOnlyLookAlikeAreDifferent() throws {
        let object = try json(#"{"\u212A":1,"e\u0301":2}"#)
        #expect(object["K"] == nil, "the kelvin sign is no K")
        #expect(object["\u{E9}"] == nil)
        #expect(object["e\u{301}"]?.int == 2)
    }

    @Test func valuesInsideALargerBufferKeepTheirPlace() throws {
        let buffer = Array(#"xx{"a":[1,{"b":"c"}]}yy"#.utf8)
        let value = try JSON(parsing: buffer[2..<(buffer.count - 2)])
        #expect(value["a"]?.elements.last?["b"]?.string == "c")
        // Offsets count from the slice's own start.
        #expect(defect(Array("xx[}".utf8)[2...]) == 1)
    }
}

extension String {
    fileprivate func trimmingSpace() -> String {
        var view = self[...]
        while let first = view.unicodeScalars.first, " \t\r\n".unicodeScalars.contains(first) {
            view.unicodeScalars.removeFirst()
        }
        while let last = view.unicodeScalars.last, " \t\r\n".unicodeScalars.contains(last) {
            view.unicodeScalars.removeLast()
        }
        return String(view)
    }
}

@Suite struct JSONEqualityTests {
    @Test(arguments: [
        (#"{"a":1,"b":[1,{"c":"x"}]}"#, #"{ "b": [1, {"c":"\u0078"}], "a":1 }"#, true),
        (#"{"a":1}"#, #"{"a":2}"#, false), (#"{"a":1}"#, #"{"a":1,"b":2}"#, false), ("[1,2]", "[2,1]", false),
        (#"{"a":1,"a":2}"#, #"{"a":2}"#, true), ("1.0", "1", false), ("null", "false", false),
        (#""é""#, #""\u00e9""#, true), (#""é""#, #""e\u0301""#, false), ("{}", "[]", false),
    ]) func tellsValuesApart(_ one: String, _ other: String, _ expected: Bool) throws {
        let (a, b) = (try JSON(parsing: Array(one.utf8)), try JSON(parsing: Array(other.utf8)))
        #expect(a.isEqual(to: b) == expected)
        #expect(b.isEqual(to: a) == expected)
    }
}

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
