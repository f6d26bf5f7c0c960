import StreamFiles
import Streams
import TestSupport
import Testing

@Suite struct RecordFrameTests {
    static func records() throws -> [StreamRecord] {
        let name = try #require(StreamName("Grüße/1"))
        var configuration = StreamConfiguration(contentType: "application/json")
        configuration.lifetime = .until(1_800_000_000_000)
        configuration.lease = 20
        configuration.gathering = 0
        configuration.owner = .user("ann \"a\"")
        let stamp = ProducerStamp(id: "a \"b\"", epoch: 9_007_199_254_740_991, sequence: 3)
        return [
            .created(StreamID(.max), name, configuration, at: 1_700_000_000_000),
            .held,
            .appended(Array("{}\n".utf8), nil, producer: nil, sequence: nil),
            .appended([], nil, producer: stamp, sequence: "ü2"),
            .appended(
                Array("\"end\"\n".utf8), StreamEnding(.complete, at: 5, row: Array(#"{"id":7}"#.utf8)), producer: stamp,
                sequence: nil),
            .closing(Array("x\n".utf8), StreamEnding(.complete, at: 6), producer: stamp, sequence: "z"),
            .reopened,
            .closing([], StreamEnding(.complete, at: 7), producer: nil, sequence: nil),
            .closed(row: Array(#"{"id":8}"#.utf8)),
            .closed(row: nil),
            .ended(StreamEnding(.aborted, at: 1_700_000_000_001)),
        ]
    }

    private static func frames(_ records: [StreamRecord]) -> [UInt8] {
        var bytes: [UInt8] = []
        for record in records { RecordFrame.append(record, to: &bytes) }
        return bytes
    }

    @Test func whatWasWrittenIsRead() throws {
        let records = try Self.records()
        let bytes = Self.frames(records)
        let read = RecordFrame.records(in: bytes)
        #expect(read.records == records && read.end == bytes.count)
    }

    @Test(arguments: [StreamConfiguration.Lifetime.unlimited, .idle(seconds: 60)])
    func lifetimesAreRead(_ lifetime: StreamConfiguration.Lifetime) throws {
        var configuration = StreamConfiguration(contentType: "text/plain; charset=utf-8")
        configuration.lifetime = lifetime
        let record = StreamRecord.created(StreamID(1), try #require(StreamName("a")), configuration, at: 1)
        #expect(RecordFrame.records(in: Self.frames([record])).records == [record])
    }

    /// A write that a crash cut off, at whatever byte.
    @Test func aTornTailIsLeftOut() throws {
        let records = try Self.records()
        let whole = Self.frames(records.dropLast())
        let bytes = Self.frames(records)
        for length in whole.count..<bytes.count {
            let read = RecordFrame.records(in: Array(bytes.prefix(length)))
            #expect(read.records == records.dropLast() && read.end == whole.count)
        }
    }

    /// Pages of a file may be written in another order than they were filled: a length stands, and zeros behind it.
    @Test func damagedBytesAreFound() throws {
        let records = try Self.records()
        var random = SeededGenerator(seed: 1)
        let bytes = Self.frames(records)
        for _ in 0..<500 {
            var damaged = bytes
            let place = Int.random(in: 0..<bytes.count, using: &random)
            damaged[place] ^= UInt8.random(in: 1...255, using: &random)
            let read = RecordFrame.records(in: damaged)
            #expect(read.end <= place && read.records.elementsEqual(records.prefix(read.records.count)))
        }
    }

    @Test func anyBytesAreRead() {
        var random = SeededGenerator(seed: 2)
        for length in 0..<300 {
            let read = RecordFrame.records(in: (0..<length).map { _ in UInt8.random(in: 0...3, using: &random) })
            #expect(read.records.isEmpty && read.end == 0)
        }
    }

    /// Whoever writes into the folder or into Redis makes checksums, too: a record whose numbers are beyond those that are reckoned with
    /// is none, and so is what follows.
    @Test func numbersBeyondCountingAreNoRecords() throws {
        let name = try #require(StreamName("a"))
        let configuration = StreamConfiguration(contentType: "text/plain")
        func with(_ change: (inout StreamConfiguration) -> Void) -> StreamConfiguration {
            var changed = configuration
            change(&changed)
            return changed
        }
        let hostile: [StreamRecord] = [
            .created(StreamID(1), name, configuration, at: .min), .created(StreamID(1), name, configuration, at: .max),
            .created(StreamID(1), name, with { $0.lifetime = .idle(seconds: .max) }, at: 1),
            .created(StreamID(1), name, with { $0.lifetime = .until(.min) }, at: 1),
            .created(StreamID(1), name, with { $0.lease = .max }, at: 1),
            .created(StreamID(1), name, with { $0.gathering = .min }, at: 1),
            .ended(StreamEnding(.aborted, at: .min)),
            .appended([], StreamEnding(.complete, at: .max), producer: nil, sequence: nil),
            .appended([1], nil, producer: ProducerStamp(id: "p", epoch: .max, sequence: 0), sequence: nil),
            .appended([1], nil, producer: ProducerStamp(id: "p", epoch: 0, sequence: .max), sequence: nil),
            .closing(
                [1], StreamEnding(.complete, at: 1), producer: ProducerStamp(id: "", epoch: 0, sequence: 1),
                sequence: nil),
        ]
        for record in hostile {
            let read = RecordFrame.records(in: Self.frames([record, .held]))
            #expect(read.records.isEmpty && read.end == 0, "\(record)")
        }
    }
}
