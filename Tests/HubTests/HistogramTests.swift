import Hub
import Testing

@Suite("Histograms")
struct HistogramTests {
    @Test func whatIsRecordedIsInTheFirstBucketThatHoldsIt() {
        var histogram = Histogram.ofLatency
        for milliseconds in [0.1, 0.5, 0.6, 3, 400_000] {
            histogram.recordDuration(nanoseconds: Int64(milliseconds * 1e6))
        }
        #expect(histogram.counts.prefix(4) == [2, 1, 0, 1])
        #expect(histogram.counts.last == 1)
        #expect(histogram.count == 5)
        #expect(histogram.sum == 400_004_200_000)
    }

    @Test func quantilesAreBounds() {
        var histogram = Histogram.ofTurns
        #expect(histogram.quantile(0.5) == nil)
        for _ in 0..<98 { histogram.recordDuration(nanoseconds: 90_000) }
        for _ in 0..<2 { histogram.recordDuration(nanoseconds: 9_000_000) }
        #expect(histogram.quantile(0.5) == 100_000)
        #expect(histogram.quantile(0.98) == 100_000)
        #expect(histogram.quantile(0.99) == 10_000_000)
        histogram.recordDuration(nanoseconds: 5_000_000_000)
        #expect(histogram.quantile(1) == nil)
    }

    @Test func sumsAreAsIfOneHadCountedAll() {
        var (one, other, both) = (Histogram.ofTurns, Histogram.ofTurns, Histogram.ofTurns)
        for nanoseconds in stride(from: Int64(10_000), to: 2_000_000_000, by: 7_770_000) {
            both.recordDuration(nanoseconds: nanoseconds)
            if nanoseconds % 20_000 == 0 {
                one.recordDuration(nanoseconds: nanoseconds)
            } else {
                other.recordDuration(nanoseconds: nanoseconds)
            }
        }
        one.addCounts(other)
        #expect(one == both)
    }

    // MARK: What is read out of one

    @Test func theDifferenceIsWhatCameSince() {
        var histogram = Histogram.ofLatency
        histogram.recordDuration(nanoseconds: 400_000)
        let earlier = histogram
        for _ in 0..<10 { histogram.recordDuration(nanoseconds: 7_000_000) }
        let news = histogram.changeSince(earlier)
        #expect(news.count == 10)
        #expect(news.sum == 70_000_000)
        #expect(news.quantile(0.01) == 10_000_000)
    }

    @Test func anEstimateLiesInTheBucket() throws {
        var histogram = Histogram.ofLatency
        for _ in 0..<100 { histogram.recordDuration(nanoseconds: 7_000_000) }
        #expect(try #require(histogram.estimate(0.5)) == 7_500_000)
        #expect(try #require(histogram.estimate(1)) == 10_000_000)
        #expect(Histogram.ofLatency.estimate(0.5) == nil)
    }

    @Test func beyondTheLastBoundIsTheLastBound() throws {
        var histogram = Histogram.ofTurns
        histogram.recordDuration(nanoseconds: 60_000_000_000)
        #expect(try #require(histogram.estimate(0.99)) == 1_000_000_000)
    }
}
