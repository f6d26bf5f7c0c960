import Testing
import Wire

/// Events for readers of HTTP answers, byte by byte.
@Suite struct EventFrameTests {
    private static let topic = JSONString.encode("realtime:room:1")

    private func text(_ frame: Frame?) -> String? { frame.map { String(decoding: $0.bytes, as: UTF8.self) } }

    private func frames(_ isLines: Bool, _ isChunked: Bool = false, isBehindPosition: Bool = false) -> ServerFrame {
        ServerFrame(
            .events(EventFormat(isLines: isLines, isChunked: isChunked)), topic: Self.topic,
            isBehindPosition: isBehindPosition)
    }

    private let broadcast = Array(#"{"type":"broadcast","event":"hi","payload":{"n":1},"meta":{"id":"x"}}"#.utf8)

    @Test func whatTheHubSays() {
        let payload = Array(#"{"a":1}"#.utf8)
        #expect(
            text(frames(false).push("system", payload: payload))
                == "event: system\ndata: {\"topic\":\"room:1\",\"event\":\"system\",\"payload\":{\"a\":1}}\n\n")
        #expect(
            text(frames(true).push("system", payload: payload))
                == "{\"topic\":\"room:1\",\"event\":\"system\",\"payload\":{\"a\":1}}\n")
    }

    @Test func aBroadcast() {
        #expect(
            text(frames(false).push("broadcast", payload: broadcast))
                == "event: hi\ndata: {\"topic\":\"room:1\",\"event\":\"hi\",\"type\":\"broadcast\",\"payload\":{\"n\":1},\"meta\":{\"id\":\"x\"}}\n\n"
        )
    }

    @Test func aChunkHasItsLength() {
        let bare = frames(false).push("broadcast", payload: broadcast).bytes
        #expect(
            frames(false, true).push("broadcast", payload: broadcast).bytes
                == Array("\(String(bare.count, radix: 16))\r\n".utf8) + bare + Array("\r\n".utf8))
    }

    @Test(arguments: [false, true]) func anEventIsOneWithItsPosition(_ isLines: Bool) throws {
        let format = EventFormat(isLines: isLines, isChunked: false)
        let event = try #require(text(frames(isLines, isBehindPosition: true).push("broadcast", payload: broadcast)))
        let whole = try #require(text(frames(isLines).push("broadcast", payload: broadcast)))
        #expect((text(EventFrame.position(nil, format)) ?? "") + event == whole)
        let marked = try #require(text(EventFrame.position("1~a", format))) + event
        #expect(marked == (isLines ? "{\"id\":\"1~a\"," + whole.dropFirst() : "id: 1~a\n" + whole))
        #expect(text(EventFrame.position(alone: "1~a", format)) == (isLines ? "{\"id\":\"1~a\"}\n" : "id: 1~a\n\n"))
    }

    @Test(arguments: Array(EventFrame.reserved) + ["", "a\nb", "a\rb", "\u{0}"]) func noBroadcastPassesForAnother(
        _ event: String
    ) {
        let payload = UserBroadcast.textPayload(event, .emptyObject)
        #expect(text(frames(false).push("broadcast", payload: payload))?.hasPrefix("event: broadcast\ndata: {") == true)
    }

    @Test func linesThatAClientBroke() {
        let payload = Array("{\"event\":\"e\",\n\n\"payload\":{\r\n\"a\":\"\\n\"}}".utf8)
        #expect(
            text(frames(false).push("broadcast", payload: payload))
                == "event: e\ndata: {\"topic\":\"room:1\",\"event\":\"e\",\"type\":\"broadcast\",\"payload\":{  \"a\":\"\\n\"}}\n\n"
        )
    }

    @Test func bytes() throws {
        let message = UserBroadcast(event: "raw", encoding: .raw, payload: [0, 255, 10], metadata: nil)
        #expect(
            text(frames(true).rawBroadcast(message))
                == "{\"topic\":\"room:1\",\"event\":\"raw\",\"type\":\"broadcast\",\"encoding\":\"base64\",\"payload\":\"AP8K\"}\n"
        )
        #expect(ServerFrame(.v2, topic: Self.topic).rawBroadcast(message) == nil)
    }

    @Test func silence() {
        #expect(text(EventFrame.comment(EventFormat(isLines: false, isChunked: true))) == "3\r\n:\n\n\r\n")
        #expect(text(EventFrame.comment(EventFormat(isLines: true, isChunked: false))) == "\n")
        #expect(text(EventFrame.retry(3000, EventFormat(isLines: false, isChunked: false))) == "retry: 3000\n\n")
        #expect(EventFrame.retry(3000, EventFormat(isLines: true, isChunked: false)) == nil)
    }
}
