import Cluster
import Testing

/// Messages to one hub, and digests: true behind one sequence, and used at none other.
@Suite struct DirectMessageTests {
    private var log: LogStage
    private let ann: HubIdentity

    init() throws {
        log = try LogStage()
        ann = try LogStage.hub("ann", boot: 2)
        _ = log.open()
    }

    @Test mutating func aStampedMessageWaitsForExactlyItsSequence() {
        #expect(log.direct(ann, after: 2) == [])
        #expect(log.direct(ann, after: 4) == [])
        #expect(log.direct(ann, after: nil) == ["deliver -"])
        #expect(
            log.publish(log.write(ann, 1, count: 5)) == [
                "apply ann 1,2", "deliver 2", "apply ann 3,4", "deliver 4", "apply ann 5",
            ])
        #expect(log.direct(ann, after: 5) == ["deliver 5"])
        #expect(log.direct(ann, after: 4) == ["stale 4"])
        #expect(log.reader.waitingBytes == 0)
    }

    @Test mutating func aGapMakesItStale() {
        #expect(log.direct(ann, after: 1) == [])
        #expect(log.direct(ann, after: 2) == [])
        #expect(log.publish(log.write(ann, 3)) == ["gap ann 1...2 missing", "stale 1", "deliver 2", "apply ann 3"])
    }

    @Test mutating func aDeathMakesItStale() {
        _ = log.publish(log.write(ann, 1))
        #expect(log.direct(ann, after: 9) == [])
        #expect(log.ended(ann, since: LogPlace(epoch: 100, offset: -1)).last == "stale 9")
        #expect(log.reader.waitingBytes == 0)
    }

    @Test mutating func whatWaitsIsBounded() throws {
        var limits = LogReader.Limits()
        limits.heldBytes = 1_000
        log = try LogStage(limits: limits)
        _ = log.open()
        var stale = 0
        for _ in 0..<50 {
            stale += log.direct(ann, after: 5, bytes: 50).count
            #expect(log.reader.waitingBytes <= 1_000)
        }
        #expect(stale == 46)
    }

    @Test mutating func aDigestIsComparedBehindItsSequence() {
        let place = LogPlace(epoch: 100, offset: -1)
        #expect(log.beat(ann, settled: 0, at: place, digest: 7, digestSequence: 2) == [])
        #expect(log.publish(log.write(ann, 1, count: 3)) == ["apply ann 1,2", "digest 7 at 2", "apply ann 3"])
        #expect(log.beat(ann, settled: 3, at: log.head.place, digest: 8, digestSequence: 3) == ["digest 8 at 3"])
        #expect(log.beat(ann, settled: 3, at: log.head.place, digest: 8, digestSequence: 2) == [])
    }
}
