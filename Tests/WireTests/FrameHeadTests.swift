import Testing
import Wire

/// A frame's topic, event and payload, whatever its kind.
@Suite struct FrameHeadTests {
    private func head(_ text: String) -> FrameHead { FrameHead(message: Array(text.utf8)[...], isBinary: false) }

    @Test func bothVersions() {
        let expected = FrameHead(topic: "realtime:a", event: "broadcast", excerpt: #"{"n":1}"#)
        #expect(head(#"["1","2","realtime:a","broadcast",{"n":1}]"#) == expected)
        #expect(head(#"{"topic":"realtime:a","event":"broadcast","payload":{"n":1},"ref":null}"#) == expected)
    }

    @Test func binaryFramesOfBothWays() {
        let payload = Array(#"{"n":1}"#.utf8)
        let incoming: [UInt8] = [3, 1, 0, 1, 2, 0, 1] + Array("7aev".utf8) + payload
        let outgoing: [UInt8] = [4, 1, 2, 0, 1] + Array("aev".utf8) + payload
        for message in [incoming, outgoing] {
            #expect(
                FrameHead(message: message[...], isBinary: true)
                    == FrameHead(topic: "a", event: "ev", excerpt: #"{"n":1}"#))
        }
    }

    @Test func whatIsNoFrameIsToldAsSuch() {
        #expect(head("{").event == "malformed")
        for bytes in [[], [3], [4, 200, 200, 0, 1, 65], [9, 9, 9, 9, 9, 9, 9, 9]] as [[UInt8]] {
            _ = FrameHead(message: bytes[...], isBinary: true)
        }
    }

    @Test func theHubsOwnFrames() {
        let text = ServerFrame(.v2, topic: JSONString.encode("realtime:a")).push("system", payload: Array("{}".utf8))
        #expect(FrameHead(text) == FrameHead(topic: "realtime:a", event: "system", excerpt: "{}"))
        #expect(FrameHead(.ping).event == "ping")
        let close = FrameHead(.close(.serviceRestart, reason: "restarting"))
        #expect(close == FrameHead(topic: "", event: "close", excerpt: "1012 restarting"))
    }

    @Test(arguments: [10, 125, 126, 200, 65_535, 65_536, 70_000]) func thePayloadStandsBehindTheHeader(count: Int) {
        let frame = Frame(.text, count: count) { $0 += repeatElement(UInt8(7), count: count) }
        #expect(Array(frame.payload) == [UInt8](repeating: 7, count: count))
    }
}
