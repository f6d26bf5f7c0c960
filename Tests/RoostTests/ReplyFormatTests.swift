import Glibc
import Testing

@testable import roost

/// Where the text is in what models' APIs stream.
@Suite struct ReplyFormatTests {
    @Test func openai() {
        #expect(ReplyFormat.openai.extractText(of: #"{"choices":[{"index":0,"delta":{"content":"Hé"}}]}"#) == "Hé")
        #expect(ReplyFormat.openai.extractText(of: #"{"type":"response.output_text.delta","delta":" you"}"#) == " you")
        for other in ["[DONE]", #"{"choices":[{"delta":{"role":"assistant"}}]}"#, #"{"choices":[]}"#, "{}"] {
            #expect(ReplyFormat.openai.extractText(of: other) == nil)
        }
    }

    @Test func anthropic() {
        let text = #"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}"#
        #expect(ReplyFormat.anthropic.extractText(of: text) == "Hi")
        #expect(ReplyFormat.anthropic.extractText(of: #"{"type":"message_stop"}"#) == nil)
        let json = #"{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{"}}"#
        #expect(ReplyFormat.anthropic.extractText(of: json) == nil)
    }

    @Test func vercel() {
        #expect(ReplyFormat.vercel.extractText(of: #"{"type":"text-delta","id":"1","delta":"a"}"#) == "a")
        #expect(ReplyFormat.vercel.extractText(of: #"{"type":"text-start","id":"1"}"#) == nil)
    }

    /// However the bytes are cut.
    @Test(arguments: 1...9) func events(_ size: Int) {
        let text = "event: a\r\ndata: é1\r\ndata:2\r\n\r\n: nothing\n\ndata: x\nid: 7\n\nevent: lost\n\ndata: y\n\n"
        var (events, parser) = ([ServerEvents.Event](), ServerEvents())
        let bytes = Array(text.utf8)
        for start in stride(from: 0, to: bytes.count, by: size) {
            events += parser.parsePiece(Array(bytes[start..<min(start + size, bytes.count)]))
        }
        #expect(
            events == [
                .init(name: "a", data: "é1\n2"), .init(name: "message", data: "x"), .init(name: "message", data: "y"),
            ])
    }

    @Test func theInputIsReadAsItComes() throws {
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        let event = "data: {\"type\":\"text-delta\",\"delta\":\"0123456789\"}\n\ndata: {\"type\":\"finish\"}\n\n"
        #expect(event.withCString { write(ends[1], $0, event.utf8.count) } == event.utf8.count)
        close(ends[1])
        var input = ReplyInput(ends[0], .vercel)
        var text: [UInt8] = []
        withUnsafeTemporaryAllocation(byteCount: 64, alignment: 1) { buffer in
            while case let count = input.readBytes(into: buffer), count > 0 { text += buffer[..<count] }
        }
        close(ends[0])
        #expect(String(decoding: text, as: UTF8.self) == "0123456789")
    }
}
