import Testing

@testable import Forwarding

/// What a backend answers, cut into messages however its bytes arrive.
@Suite struct ForwardedAnswerTests {
    /// The messages of an answer that comes in pieces of so many bytes.
    private func messages(_ type: String, _ text: String, piece: Int, member: String? = nil) throws -> [String] {
        var answer = ForwardedAnswer(contentType: type, eventMember: member, most: 100)
        var found: [[UInt8]] = []
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            found += try Array(rest.prefix(piece)).withUnsafeBufferPointer { try answer.takeBytes($0) }
            rest = rest.dropFirst(piece)
        }
        return (found + (try answer.finishAnswer())).map { String(decoding: $0, as: UTF8.self) }
    }

    @Test("An event stream's events are messages, whatever ends its lines", arguments: ["\n", "\r\n", "\r"])
    func events(_ end: String) throws {
        let text =
            [
                ": a comment", "event: token", "id: 1", "data: {\"text\":\"Grüße\"}", "", "data: {\"a\":1,",
                "data: \"b\":2}", "",
                "data: [DONE]", "", "event: nothing", "", "data: {\"cut\":true}",
            ].joined(separator: end) + end
        for piece in [1, 2, 3, 7, 1000] {
            #expect(
                try messages("text/event-stream; charset=utf-8", text, piece: piece) == [
                    "{\"text\":\"Grüße\"}", "{\"a\":1,\n\"b\":2}", "\"[DONE]\"",
                ])
        }
    }

    @Test("An event's name goes into its message if that has none")
    func names() throws {
        let text =
            "event: token\ndata: {\"text\":\"a\"}\n\nevent: done\ndata: {}\n\nevent: x\ndata: {\"type\":\"own\"}\n\nevent: y\ndata: 1\n\n"
        #expect(
            try messages("text/event-stream", text, piece: 5, member: "type") == [
                "{\"type\":\"token\",\"text\":\"a\"}", "{\"type\":\"done\"}", "{\"type\":\"own\"}", "1",
            ])
    }

    @Test("Lines and whole values of JSON")
    func json() throws {
        #expect(try messages("application/x-ndjson", "{\"n\":1}\n\n[2]\r\n3", piece: 4) == ["{\"n\":1}", "[2]", "3"])
        #expect(try messages("Application/JSON", " {\"n\":\n1} ", piece: 3) == ["{\"n\":\n1}"])
        #expect(try messages("text/plain", "", piece: 1).isEmpty)
    }

    @Test("What is no JSON, or beyond the bound, is refused")
    func refusals() throws {
        let long = String(repeating: "x", count: 101)
        #expect(throws: ForwardedAnswer.Failure.notJSON) { try messages("text/html", "<p>", piece: 9) }
        #expect(throws: ForwardedAnswer.Failure.notJSON) { try messages("application/x-ndjson", "{\n", piece: 9) }
        #expect(throws: ForwardedAnswer.Failure.tooLarge) { try messages("application/json", "\"\(long)\"", piece: 9) }
        #expect(throws: ForwardedAnswer.Failure.tooLarge) {
            try messages("text/event-stream", "data: \(long)", piece: 9)
        }
        let many = String(repeating: "data: 123456789\n", count: 12)
        #expect(throws: ForwardedAnswer.Failure.tooLarge) { try messages("text/event-stream", many, piece: 9) }
    }
}
