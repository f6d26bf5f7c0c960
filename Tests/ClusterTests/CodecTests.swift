import Cluster
import Testing

/// What hubs send each other, as bytes: what is encoded is decoded, and whatever else comes does no harm.
@Suite struct ClusterCodecTests {
    private static let hub = HubIdentity(name: "hub-1.eu_west", boot: 0xfedc_ba98_7654_3210)

    private static func batch() throws -> LogBatch {
        LogBatch(
            hub: try #require(hub), since: LogPlace(epoch: 1_700_000_000_000, offset: -1), base: 3, skipped: 2,
            first: 300,
            messages: [[1, 2, 3], [], [UInt8](repeating: 7, count: 300)[...]])
    }

    private static func beat() throws -> HubBeat {
        let hub = try #require(hub)
        return HubBeat(
            hub: hub, number: 7, since: LogPlace(epoch: 1, offset: 0), base: 2, place: LogPlace(epoch: 2, offset: 900),
            settled: 300, digest: .max, digestSequence: 301, protocolVersion: 1, flags: [.draining],
            figures: [0, 5, .max],
            ended: [HubBeat.Ended(hub: hub, since: LogPlace(epoch: 9, offset: -1), silence: 4_000)], software: "1.2.3")
    }

    private static func direct() throws -> DirectMessage {
        DirectMessage(sender: try #require(hub), receiver: 5, afterSequence: 0, payload: [1, 2])
    }

    @Test func namesAreShortAndPlain() {
        for name in ["a", "hub-1", "A.b_C-9", String(repeating: "x", count: 64)] {
            #expect(HubIdentity(name: name, boot: 1)?.name == name)
        }
        for name in ["", "a b", "a:b", "a\n", "é", "a/b", "{a}", String(repeating: "x", count: 65)] {
            #expect(HubIdentity(name: name, boot: 1) == nil, "\(name)")
        }
    }

    @Test func placesAreReadStrictly() {
        #expect(LogPlace(id: "12-34".utf8) == LogPlace(epoch: 12, offset: 34))
        #expect(LogPlace(id: "12--1".utf8) == LogPlace(epoch: 12, offset: -1))
        for id in [
            "", "12", "-", "12-", "-3", "12-3-4", " 12-3", "12-3 ", "+1-2", "12--2", "1-99999999999999999999", "x-1",
        ] {
            #expect(LogPlace(id: id.utf8) == nil, "\(id)")
        }
        #expect(LogPlace(epoch: 5, offset: 3).rangeStart == "(5-3")
        #expect(LogPlace(epoch: 5, offset: -1).rangeStart == "5-0")
    }

    @Test func headsAreRead() throws {
        let head = try #require(LogHead("1700 -1 abc 0 1600-7 1500--1".utf8))
        #expect(head.place == LogPlace(epoch: 1_700, offset: -1))
        #expect(head.tag == 0)
        #expect(head.older == [LogPlace(epoch: 1_600, offset: 7), LogPlace(epoch: 1_500, offset: -1)])
        for text in ["", "1 2 abc", "1 2 abc x", "1 2 abc 3 4", "1 2 abc 3" + String(repeating: " 1-1", count: 17)] {
            #expect(LogHead(text.utf8) == nil, "\(text)")
        }
    }

    @Test func whatIsEncodedIsDecoded() throws {
        let batch = try Self.batch()
        #expect(LogBatch.decode(batch.encoded()[...]) == .value(batch))
        #expect(batch.last == 302)
        let beat = try Self.beat()
        #expect(PublishedMessage.decode(PublishedMessage.encode(beat)[...]) == .value(.beat(beat)))
        for stamp in [nil, 0, 77] as [UInt64?] {
            var direct = try Self.direct()
            direct.afterSequence = stamp
            #expect(PublishedMessage.decode(PublishedMessage.encode(direct)[...]) == .value(.direct(direct)))
        }
        let entry = LogEntry(place: LogPlace(epoch: 4, offset: 5), previous: 6, tag: .max, batch: batch.encoded()[...])
        #expect(PublishedMessage.decode(PublishedMessage.encode(entry)[...]) == .value(.entry(entry)))
    }

    @Test func aNewerHubIsSkipped() throws {
        var bytes = try Self.batch().encoded()
        bytes[0] = 2
        #expect(LogBatch.decode(bytes[...]) == .unknownVersion)
        #expect(HubBeat.decode([9]) == .unknownVersion)
        #expect(DirectMessage.decode([9, 1]) == .unknownVersion)
        #expect(PublishedMessage.decode(Array("rumour 5\nx".utf8)[...]) == .unknownVersion)
        for text in [
            "", "beat", "1 2 3\n", "1 -1 3 4\n", "1  2 3 4\n", "1 2 3 4 5\n", String(repeating: "1", count: 200) + "\n",
        ] {
            #expect(PublishedMessage.decode(Array(text.utf8)[...]) == .malformed, "\(text)")
        }
    }

    /// Hubs of two versions run beside each other: what a newer one adds to a form, an older one reads past.
    @Test func aLongerFormIsReadAsFarAsItIsKnown() throws {
        let more: [UInt8] = [0, 200, 7, 255]
        let (batch, beat) = (try Self.batch(), try Self.beat())
        #expect(LogBatch.decode((batch.encoded() + more)[...]) == .value(batch))
        #expect(HubBeat.decode((beat.encoded() + more)[...]) == .value(beat))
        var flags = beat.encoded()
        flags[1] |= 0x80
        guard case .value(let read) = HubBeat.decode(flags[...]) else { throw CodecTestError.refused }
        #expect(read.flags.contains(.draining) && read.hub == beat.hub, "a flag that is not known")
        // More figures than this hub knows are not shown; and an older hub's beat says nothing of its version.
        var older = beat
        older.software = nil
        #expect(HubBeat.decode(older.encoded()[...]) == .value(older))
        for text in ["", "a b", "1\n2", String(repeating: "9", count: 65)] {
            #expect(HubBeat.decode((older.encoded() + [UInt8(text.utf8.count)] + text.utf8)[...]) == .malformed)
        }
    }

    /// A count or a length that is larger than the bytes that came allocates nothing.
    @Test func countsThatLieAreRefused() throws {
        let head: [UInt8] = [1, 1, 0x61, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 1]
        #expect(LogBatch.decode((head + [0xff, 0xff, 0x03, 0])[...]) == .malformed)
        #expect(LogBatch.decode((head + [1, 0xff, 0xff, 0xff, 0xff, 0x0f])[...]) == .malformed)
        #expect(LogBatch.decode((head + [0])[...]) == .malformed)
        // In two bytes where one would do.
        #expect(LogBatch.decode((head + [0x81, 0x00, 0])[...]) == .malformed)
        guard case .value = LogBatch.decode((head + [1, 0])[...]) else { throw CodecTestError.refused }
    }

    private enum CodecTestError: Error { case refused }

    /// Truncated, changed, and made up: never a trap, and what is read is what would be written.
    @Test func anyBytesAreSafe() throws {
        var random = Simulation.Generator(state: 21)
        let samples = [
            try Self.batch().encoded(), PublishedMessage.encode(try Self.beat()),
            PublishedMessage.encode(try Self.direct()),
            try Self.beat().encoded(), try Self.direct().encoded(),
        ]
        var decoded = 0
        for sample in samples {
            for count in 0..<sample.count {
                #expect(LogBatch.decode(sample.prefix(count)) != (try .value(Self.batch())))
                _ = PublishedMessage.decode(sample.prefix(count))
            }
            for _ in 0..<20_000 {
                var bytes = sample
                for _ in 0..<Int.random(in: 1...4, using: &random) {
                    bytes[Int.random(in: bytes.indices, using: &random)] = UInt8.random(in: 0...255, using: &random)
                }
                if Bool.random(using: &random) { bytes.removeLast(Int.random(in: 0..<bytes.count, using: &random)) }
                if case .value(let batch) = LogBatch.decode(bytes[...]) {
                    decoded += 1
                    // What is behind it is a newer hub's.
                    if !bytes.starts(with: batch.encoded()) { Issue.record("\(bytes) was read as \(batch)") }
                    _ = batch.last
                }
                if case .value(.beat(let beat)) = PublishedMessage.decode(bytes[...]),
                    !bytes.starts(with: PublishedMessage.encode(beat))
                {
                    Issue.record("\(bytes) was read as \(beat)")
                }
                _ = HubBeat.decode(bytes[...])
                _ = DirectMessage.decode(bytes[...])
            }
        }
        #expect(decoded > 100)
    }

    @Test func theHashIsFixed() {
        var hash = FixedHash()
        hash.combine("roost".utf8)
        hash.combine(7)
        #expect(hash.value == 0x45cc_f2f6_cc3e_f77f)
    }

    /// Whatever somebody wrote into Redis: what is added to a place or a sequence that was read fits.
    @Test func nothingIsReadThatIsBeyondCounting() throws {
        let most = LogPlace(epoch: LogPlace.mostEpoch, offset: LogPlace.mostOffset)
        #expect(LogPlace(id: most.id.utf8) == most)
        for id in ["1-\(LogPlace.mostOffset + 1)", "1-\(Int64.max)", "1-\(UInt64.max)", "\(LogPlace.mostEpoch + 1)-1"] {
            #expect(LogPlace(id: id.utf8) == nil, "\(id)")
        }
        for head in ["1 \(Int64.max) a 0", "\(UInt64.max) 1 a 0", "1 1 a 0 1-\(Int64.max)", "1 1 a 0 \(UInt64.max)-1"] {
            #expect(LogHead(head.utf8) == nil, "\(head)")
        }
        for line in ["1 \(Int64.max) 0 1\n", "\(UInt64.max) 1 0 1\n"] {
            #expect(PublishedMessage.decode(Array(line.utf8)[...]) == .malformed, "\(line)")
        }
        for change: (inout LogBatch) -> Void in [
            { $0.first = 1 << 48 + 1 }, { $0.first = .max / 2 }, { $0.since.offset = .max / 2 - 1 },
            { $0.since.epoch = .max },
        ] {
            var batch = try Self.batch()
            change(&batch)
            #expect(LogBatch.decode(batch.encoded()[...]) == .malformed)
        }
        for change: (inout HubBeat) -> Void in [
            { $0.settled = .max / 2 }, { $0.digestSequence = .max / 2 }, { $0.place.epoch = .max },
            { $0.place.offset = .max / 2 - 1 }, { $0.since.offset = .max / 2 - 1 }, { $0.ended[0].since.epoch = .max },
        ] {
            var beat = try Self.beat()
            change(&beat)
            #expect(HubBeat.decode(beat.encoded()[...]) == .malformed)
        }
    }
}
