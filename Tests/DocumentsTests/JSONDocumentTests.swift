import Documents
import Testing

@Suite struct JSONDocumentTests {
    private func read(
        _ text: String, _ limits: JSONDocument.Limits = .init(bytes: 10_000)
    ) throws(JSONDocument.Problem) -> JSONDocument {
        try JSONDocument(parsing: Array(text.utf8), limits: limits)
    }

    @Test func valuesByTheirKind() throws {
        let document = try read(#" {"text":"é\u0000\n","count":-7,"share":0.5,"on":true,"none":null,"list":[1,[]]} "#)
        #expect(document.kind == .object)
        #expect(document["text"]?.string == "é\0\n")
        #expect(document["count"]?.int == -7 && document["count"]?.double == -7)
        #expect(document["share"]?.double == 0.5 && document["share"]?.int == nil)
        #expect(document["on"]?.bool == true && document["on"]?.int == nil)
        #expect(document["none"]?.isNull == true && document["missing"] == nil)
        #expect(document["list"]?.elements.map(\.kind) == [.integer, .array])
        #expect(document.members.map(\.key) == ["text", "count", "share", "on", "none", "list"])
        #expect(document.elements.isEmpty && document.string == nil && document["text"]?["x"] == nil)
    }

    @Test func aPartOutlivesItsWhole() throws {
        var part: JSONDocument?
        do { part = try read(#"{"a":{"b":["kept"]}}"#)["a"]?["b"]?.elements.first }
        #expect(part?.string == "kept")
    }

    @Test func ofARepeatedKeyTheLastValueCounts() throws { #expect(try read(#"{"a":1,"a":2}"#)["a"]?.int == 2) }

    @Test(
        arguments: [
            ("", 1, 0, 0), ("<html>", 1, 1, 0), ("{\"a\":1,}", 1, 8, 7), ("\n\n  {\"a\":\n tru}", 4, 4, 13),
            ("[1]x", 1, 4, 3), ("[1e999]", 1, 6, 5), (#"["\ud800"]"#, 1, 9, 8), ("{\"a\u{1}\":1}", 1, 3, 2),
            ("[1]\0", 1, 4, 3),
            ("[\"\0\"]", 1, 2, 1),
        ])
    func faults(_ text: String, _ line: Int, _ column: Int, _ offset: Int) throws {
        let problem = try #require(throws: JSONDocument.Problem.self) { try read(text) }
        #expect((problem.line, problem.column, problem.offset) == (line, column, offset), "\(problem)")
        #expect(problem.description.hasPrefix("line \(line), column \(column): ") && !problem.reason.isEmpty)
    }

    @Test(
        arguments: [
            ("[[[[[]]]]]", 10, 4, "line 1, column 5: it is nested more than 4 deep"),
            ("[[[[[]]]]]", 9, 5, "line 1, column 1: it has more than 9 bytes"),
            ("[\n\"[\\\"[é\",[", 99, 1, "line 2, column 9: it is nested more than 1 deep"),
        ])
    func limits(_ text: String, _ bytes: Int, _ depth: Int, _ problem: String) throws {
        let found = try #require(throws: JSONDocument.Problem.self) {
            try read(text, .init(bytes: bytes, depth: depth))
        }
        #expect(found.description == problem)
        #expect(try read("[[[[[]]]]]", .init(bytes: 10, depth: 5)).kind == .array)
    }

    @Test func whatIsMadeIsWritten() {
        let document: JSONDocument = [
            "text": .text("a\"\\\n\u{1}é/"), "count": .integer(7), "share": .real(0.1), "whole": .real(2),
            "endless": .real(.infinity), "rounded": .rounded(1.23456), "even": .rounded(3), "none": .optional(nil),
            "list": [.bool(true), .bool(false), .null, [], [:]],
        ]
        #expect(
            document.description
                == #"{"text":"a\"\\\n\u0001é/","count":7,"share":0.1,"whole":2.0,"endless":null,"rounded":1.235,"even":3,"#
                + #""none":null,"list":[true,false,null,[],{}]}"#)
        #expect(JSONDocument.text("alone").bytes == Array(#""alone""#.utf8))
        #expect(JSONDocument.text("").string == "" && JSONDocument.object([("", .text("\0"))])[""]?.string == "\0")
    }

    @Test func whatIsWrittenIsReadAgain() throws {
        let text = #"{"b":[1,-2.5,1e300,"\u0000"],"a":{"":null}}"#
        #expect(try read(text).description == text)
    }

    @Test func threadsShareADocument() async throws {
        let document = try read(#"{"list":[1,2,3]}"#)
        let sums = await withTaskGroup(of: Int.self, returning: Set<Int>.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    (0..<500).reduce(0) { sum, _ in
                        sum + (document["list"]?.elements.compactMap(\.int).reduce(0, +) ?? 0)
                    }
                }
            }
            return await group.reduce(into: []) { $0.insert($1) }
        }
        #expect(sums == [3000])
    }
}
