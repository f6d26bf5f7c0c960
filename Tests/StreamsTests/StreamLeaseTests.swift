import Streams
import Testing

/// Who is taken for gone, and when; on a clock of numbers.
@Suite struct StreamLeaseTests {
    private let rules = StreamLease.Rules()

    private func lease(seconds: Int? = nil) -> StreamLease {
        var configuration = StreamConfiguration(contentType: "text/plain")
        configuration.lease = seconds
        return StreamLease(configuration, at: 0)
    }

    @Test func aSilentProducerStallsAndIsGivenUp() {
        var lease = lease()
        #expect(lease.advanceClock(to: 14_999, rules, hasProducer: true) == nil)
        #expect(lease.advanceClock(to: 15_000, rules, hasProducer: true) == .stalled)
        #expect(lease.advanceClock(to: 59_999, rules, hasProducer: true) == nil)
        #expect(lease.advanceClock(to: 60_000, rules, hasProducer: true) == .aborted)
    }

    @Test func whoComesBackIsThere() {
        var lease = lease()
        _ = lease.advanceClock(to: 20_000, rules, hasProducer: true)
        #expect(lease.producerHeard(at: 30_000) == .open && !lease.isStalled)
        #expect(lease.advanceClock(to: 44_999, rules, hasProducer: true) == nil)
        #expect(lease.advanceClock(to: 45_000, rules, hasProducer: true) == .stalled)
    }

    @Test func aBrokenConnectionIsSaidAtOnce() {
        var lease = lease()
        let (one, other) = (StreamHold(loop: 0, serial: 1), StreamHold(loop: 0, serial: 2))
        #expect(lease.addHold(one, at: 0) == nil && lease.addHold(other, at: 0) == nil)
        #expect(lease.releaseHold(one, at: 1000) == nil, "there is another one")
        #expect(lease.releaseHold(other, at: 2000) == .stalled)
        #expect(lease.releaseHold(other, at: 2000) == nil, "once")
        #expect(lease.advanceClock(to: 61_999, rules, hasProducer: true) == nil)
        #expect(lease.advanceClock(to: 62_000, rules, hasProducer: true) == .aborted)
    }

    @Test func whoEndsAConnectionInOrderHasAllOfTheTime() {
        var lease = lease()
        let hold = StreamHold(loop: 0, serial: 1)
        _ = lease.addHold(hold, at: 0)
        lease.finishHold(hold, at: 5000)
        #expect(!lease.isStalled)
        #expect(lease.advanceClock(to: 19_999, rules, hasProducer: true) == nil)
        #expect(lease.advanceClock(to: 20_000, rules, hasProducer: true) == .stalled)
    }

    @Test func whoHasNoProducerThatIsKnownIsAbandonedAfterAnHour() {
        var lease = lease()
        #expect(lease.advanceClock(to: 3_599_999, rules, hasProducer: false) == nil)
        #expect(lease.advanceClock(to: 3_600_000, rules, hasProducer: false) == .aborted)
    }

    @Test func theStreamMaySayHowLong() {
        var short = lease(seconds: 2)
        #expect(short.advanceClock(to: 2000, rules, hasProducer: false) == .stalled)
        #expect(short.advanceClock(to: 60_000, rules, hasProducer: false) == .aborted)
        var long = lease(seconds: 90)
        #expect(long.advanceClock(to: 89_999, rules, hasProducer: true) == nil)
        var never = lease(seconds: 0)
        #expect(never.advanceClock(to: 1_000_000_000, rules, hasProducer: true) == nil)
    }

    /// Nobody is connected then, and everybody has all of the time to come back.
    @Test func aRestartPutsProducersInDoubt() {
        var lease = lease()
        lease.restart(hasProducer: true, at: 100_000)
        #expect(lease.isStalled)
        #expect(lease.advanceClock(to: 159_999, rules, hasProducer: true) == nil)
        #expect(lease.advanceClock(to: 160_000, rules, hasProducer: true) == .aborted)
        var unknown = self.lease()
        unknown.restart(hasProducer: false, at: 100_000)
        #expect(!unknown.isStalled)
    }
}
