import Hub
import TestSupport
import Testing

@Suite struct TokenBucketTests {
    /// `#expect` takes no calls that change a value.
    private final class Bucket {
        private var bucket = TokenBucket()

        func take(_ count: Int = 1, of rate: Rate, at now: Int64) -> Bool {
            bucket.takeTokens(count, of: rate, at: now)
        }
        func spend(_ count: Int, of rate: Rate, at now: Int64) -> Int64 { bucket.spendTokens(count, of: rate, at: now) }
    }

    private static func rate(_ perSecond: Int, _ burst: Int) throws -> Rate {
        try #require(Rate(perSecond: perSecond, burst: burst))
    }

    @Test func zeroIsNoRate() {
        #expect(Rate(perSecond: 0, burst: 10) == nil)
        #expect(Rate(perSecond: -1, burst: 10) == nil)
    }

    @Test func aNewBucketIsFullAtAnyTime() throws {
        let rate = try Self.rate(10, 3)
        for now: Int64 in [0, 1, 1_000_000_000] {
            let bucket = Bucket()
            #expect((0..<5).map { _ in bucket.take(of: rate, at: now) } == [true, true, true, false, false])
        }
    }

    @Test func tokensComeBackOneByOne() throws {
        let rate = try Self.rate(10, 3)
        let bucket = Bucket()
        for _ in 0..<3 { _ = bucket.take(of: rate, at: 50) }
        #expect(!bucket.take(of: rate, at: 149))
        #expect(bucket.take(of: rate, at: 150))
        #expect(!bucket.take(of: rate, at: 150))
        #expect(bucket.take(2, of: rate, at: 350))
        #expect(!bucket.take(of: rate, at: 350))
    }

    @Test func aRefusalCostsNothing() throws {
        let rate = try Self.rate(1, 1)
        let bucket = Bucket()
        #expect(bucket.take(of: rate, at: 0))
        for now in Int64(0)..<1000 { #expect(!bucket.take(of: rate, at: now)) }
        #expect(bucket.take(of: rate, at: 1000))
    }

    @Test func quietTimeNeverGivesMoreThanTheBurst() throws {
        let rate = try Self.rate(1000, 5)
        let bucket = Bucket()
        _ = bucket.take(5, of: rate, at: 0)
        #expect(bucket.take(5, of: rate, at: 86_400_000))
        #expect(!bucket.take(of: rate, at: 86_400_000))
        #expect(!bucket.take(6, of: rate, at: 2 * 86_400_000), "more than there can ever be")
    }

    /// Against the definition: a count that grows with time up to the burst.
    @Test(arguments: [(1, 1), (3, 7), (100, 200), (5000, 10_000), (999, 1)])
    func takesWhatACountWouldGive(_ perSecond: Int, _ burst: Int) throws {
        let rate = try Self.rate(perSecond, burst)
        var generator = SeededGenerator(seed: UInt64(perSecond))
        let bucket = Bucket()
        var (tokens, last, now) = (Double(burst), Int64(0), Int64(0))
        for _ in 0..<20_000 {
            now += Int64(generator.next() % 5) * Int64(generator.next() % 40)
            tokens = min(Double(burst), tokens + Double(now - last) * Double(perSecond) / 1000)
            last = now
            let count = Int(generator.next() % 4)
            let taken = bucket.take(count, of: rate, at: now)
            // Between the two lies no more than what a nanosecond brings, rounded down at every step.
            if abs(tokens - Double(count)) > 0.1 { #expect(taken == (tokens > Double(count)), "\(tokens), \(count)") }
            if taken { tokens -= Double(count) }
        }
    }

    @Test func spendingSaysWhenNothingIsOwed() throws {
        let rate = try Self.rate(1000, 2000)
        let bucket = Bucket()
        #expect(bucket.spend(2000, of: rate, at: 0) == 0)
        #expect(bucket.spend(500, of: rate, at: 0) == 500)
        #expect(bucket.spend(0, of: rate, at: 499) == 1)
        #expect(bucket.spend(0, of: rate, at: 500) == 0)
        #expect(bucket.spend(1, of: rate, at: 500) == 1)
    }

    @Test func theLargestRatesFit() throws {
        let rate = try Self.rate(1_073_741_824, 2 * 1_073_741_824)
        let bucket = Bucket()
        #expect(bucket.spend(1_000_000_000, of: rate, at: 4_000_000_000) == 0)
        #expect(bucket.spend(1_000_000_000, of: rate, at: 4_000_000_000) == 0)
        #expect(bucket.spend(1_000_000_000, of: rate, at: 4_000_000_000) > 0)
    }

    @Test func eightBytes() {
        #expect(MemoryLayout<TokenBucket>.size == 8)
    }
}
