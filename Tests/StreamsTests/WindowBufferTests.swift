import Streams
import TestSupport
import Testing
import Wire

/// A stream of which only the newest is kept, on plain values.
@Suite struct WindowBufferTests {
    private static func buffer(_ contentType: String = "audio/mpeg") throws -> StreamBuffer {
        StreamBuffer(
            id: StreamID(7), name: try #require(StreamName("radio/1")),
            configuration: StreamConfiguration(contentType: contentType))
    }

    private static func byte(at offset: Int) -> UInt8 { UInt8(truncatingIfNeeded: offset &* 31 &+ offset >> 8) }

    private static func bytes(_ range: Range<Int>) -> [UInt8] { range.map(byte) }

    /// Whatever is appended and dropped, what is kept is what was appended there.
    @Test func whatIsKeptIsWhatWasAppended() throws {
        var random = SeededGenerator(seed: 3)
        for _ in 0..<20 {
            let buffer = try Self.buffer()
            var (start, end) = (0, 0)
            if Bool.random(using: &random) {
                start = Int.random(in: 1...300_000, using: &random)
                end = start
                _ = buffer.dropBytes(before: start)
            }
            for _ in 0..<40 {
                let more = Int.random(in: 1...90_000, using: &random)
                _ = buffer.append(Self.bytes(end..<(end + more)))
                end += more
                if Bool.random(using: &random) {
                    start = Int.random(in: start...end, using: &random)
                    _ = buffer.dropBytes(before: start)
                }
                let snapshot = buffer.snapshot
                try #require(snapshot.start == start && snapshot.end == end)
                let from = Int.random(in: start...end, using: &random)
                let piece = try #require(StreamPiece(of: buffer, in: snapshot, from: from, most: 70_000))
                try #require(piece.bytes == Self.bytes(from..<min(end, from + 70_000)))
                if start > 0 {
                    try #require(StreamPiece(of: buffer, in: snapshot, from: start - 1, most: 10) == nil)
                }
            }
        }
    }

    /// A reader looks, and what it looked at goes before it copies.
    @Test func whatWentSinceTheSnapshotIsNoPiece() throws {
        let buffer = try Self.buffer()
        _ = buffer.append(Self.bytes(0..<200_000))
        let before = buffer.snapshot
        _ = buffer.dropBytes(before: 100_000)
        #expect(StreamPiece(of: buffer, in: before, from: 0, most: 10) == nil)
        #expect(StreamPiece(of: buffer, in: before, from: 99_999, most: 10) == nil)
        #expect(StreamPiece(of: buffer, in: before, from: 100_001, most: 10)?.bytes == Self.bytes(100_001..<100_011))
    }

    @Test func aWindowOfMessagesBeginsWithOne() throws {
        let buffer = try Self.buffer("application/json")
        _ = buffer.append(Array("{\"n\":1}\n{\"n\":2}\n".utf8))
        _ = buffer.dropBytes(before: 8)
        #expect(StreamPiece(of: buffer, in: buffer.snapshot, from: 8, most: 100)?.body == Array("[{\"n\":2}]".utf8))
        #expect(StreamPiece(of: buffer, in: buffer.snapshot, from: 9, most: 100) == nil)
    }

    @Test func aWindowMovesInSteps() {
        var bound = StreamBound(bytes: 1_000_000)
        #expect(bound.beginning(of: 0..<2_000_000, old: 0) == nil, "it keeps all")
        bound.keepsNewest = true
        #expect(bound.beginning(of: 0..<1_249_999, old: 0) == nil)
        #expect(bound.beginning(of: 0..<1_250_000, old: 0) == 250_000)
        #expect(bound.beginning(of: 500_000..<1_750_000, old: 0) == 750_000)
        // By time, if it is worth the while.
        #expect(bound.beginning(of: 0..<400_000, old: 99_999) == nil)
        #expect(bound.beginning(of: 0..<400_000, old: 100_000) == 100_000)
        #expect(bound.beginning(of: 0..<100_000, old: 50_000) == nil)
        #expect(bound.beginning(of: 0..<2_000_000, old: 1_500_000) == 1_500_000)
        bound.bytes = 1024
        #expect(bound.beginning(of: 0..<(1024 + 65_536), old: 0) == 65_536)
    }

    @Test func aWindowTakesOneAppendOfItsBytes() throws {
        let name = try #require(StreamName("radio/1"))
        var log = try #require(
            StreamLog(.created(StreamID(7), name, StreamConfiguration(contentType: "audio/mpeg"), at: 1000)))
        log.applyRecord(.appended([UInt8](repeating: 1, count: 90), nil, producer: nil, sequence: nil))
        func decide(_ count: Int, isWindow: Bool) -> StreamLog.Decision {
            log.decideAppend(
                StreamAppend(body: [UInt8](repeating: 1, count: count)), limit: 100, isWindow: isWindow, at: 2000)
        }
        #expect(decide(11, isWindow: false) == .refused(.streamTooLarge(limit: 100)))
        guard case .write = decide(100, isWindow: true) else {
            Issue.record("it is refused")
            return
        }
        #expect(decide(101, isWindow: true) == .refused(.streamTooLarge(limit: 100)))
    }
}
