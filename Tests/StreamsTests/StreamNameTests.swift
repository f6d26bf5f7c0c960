import Streams
import Testing

@Suite struct StreamNameTests {
    @Test(arguments: ["a", "reply/42", "Grüße", "a b", "cancel/x"])
    func isName(_ text: String) {
        #expect(StreamName(text)?.topic == "stream:" + text)
    }

    @Test(arguments: [
        "", "/a", "a/", "a//b", "a/../b", ".", "reply/cancel", "a\nb", String(repeating: "x", count: 201),
    ])
    func isNone(_ text: String) {
        #expect(StreamName(text) == nil)
    }

    @Test("streams whose names Unicode calls equivalent are two streams")
    func areToldApartByBytes() throws {
        #expect(try #require(StreamName("reply/Jos\u{E9}")) != #require(StreamName("reply/Jose\u{301}")))
    }

    @Test("a mark that combines with the colon belongs to the name")
    func aMarkBehindThePrefixIsTheNames() {
        #expect(StreamName(topic: "stream:\u{301}a")?.text == "\u{301}a")
        #expect(StreamName(topic: "stream:\u{200D}a")?.text == "\u{200D}a")
        #expect(StreamName(topic: "stream:a")?.text == "a")
    }
}

@Suite struct StreamBufferTests {
    private func stream() throws -> StreamBuffer {
        StreamBuffer(
            id: StreamID(1), name: try #require(StreamName("a")),
            configuration: StreamConfiguration(contentType: "text/plain"))
    }

    @Test func copiesWhatIsThereAcrossBlocks() throws {
        let buffer = try stream()
        let bytes = (0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 / 251) }
        for start in stride(from: 0, to: bytes.count, by: 70_001) {
            _ = buffer.append(bytes[start..<min(start + 70_001, bytes.count)])
        }
        #expect(buffer.snapshot.end == bytes.count)
        for range in [0..<1, 65_535..<65_537, 131_000..<200_000, 199_999..<300_000, 0..<200_000] {
            var out: [UInt8] = []
            buffer.copyBytes(range, into: &out)
            #expect(out == Array(bytes[range.clamped(to: 0..<bytes.count)]))
        }
    }

    @Test func tellsEachLoopOnceUntilItLooked() throws {
        let buffer = try stream()
        buffer.addWatch(by: 0)
        buffer.addWatch(by: 3)
        #expect(buffer.append([1]) == [0, 3])
        #expect(buffer.append([2]) == [])
        buffer.noteSeen(by: 3)
        #expect(buffer.setStatus(.stalled) == [3])
        buffer.removeWatch(by: 0)
        buffer.noteSeen(by: 3)
        #expect(buffer.setGone() == [3])
    }
}
