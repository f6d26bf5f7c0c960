import Hub
import Testing

/// The difference of two histograms, and what is read out of one.
@Suite struct HistogramEstimateTests {
    @Test func theDifferenceIsWhatCameSince() {
        var histogram = Histogram.ofLatency
        histogram.record(nanoseconds: 400_000)
        let earlier = histogram
        for _ in 0..<10 { histogram.record(nanoseconds: 7_000_000) }
        let news = histogram.since(earlier)
        #expect(news.count == 10)
        #expect(news.sum == 70_000_000)
        #expect(news.quantile(0.01) == 10_000_000)
    }

    @Test func anEstimateLiesInTheBucket() throws {
        var histogram = Histogram.ofLatency
        for _ in 0..<100 { histogram.record(nanoseconds: 7_000_000) }
        #expect(try #require(histogram.estimate(0.5)) == 7_500_000)
        #expect(try #require(histogram.estimate(1)) == 10_000_000)
        #expect(Histogram.ofLatency.estimate(0.5) == nil)
    }

    @Test func beyondTheLastBoundIsTheLastBound() throws {
        var histogram = Histogram.ofTurns
        histogram.record(nanoseconds: 60_000_000_000)
        #expect(try #require(histogram.estimate(0.99)) == 1_000_000_000)
    }
}
