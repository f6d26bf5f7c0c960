import Testing

@testable import roost_load

@Suite struct OutputMergerTests {
    @Test func countsAddUpAndTimesDoNot() throws {
        let merged = try #require(RunMerger.merged([OutputExample.run(), OutputExample.run(samples: 5)]))
        #expect(merged.figures.map(\.name) == ["delivered", "secret", "lost"])
        #expect(merged.figures[0].value == 2_406_688)
        #expect(merged.remarks.last == "hub_cpu_us_per_delivery cannot be added up: look for it in the single records.")
        #expect(merged.samples.map(\.received) == [2000, 2002, 2004, 1003, 1004])
        #expect(merged.samples[0].processes.map(\.name) == ["hub", "hub 2"])
        #expect(merged.samples[0].p99 == 5_000_000)
    }

    @Test func percentilesAreNeverTooLow() throws {
        var (one, other) = (OutputExample.run(), OutputExample.run())
        one.latencies = [OutputExample.latency("commit", count: 900)]
        other.latencies = [OutputExample.latency("commit", count: 100, factor: 10)]
        let latency = try #require(RunMerger.merged([one, other])?.latencies.first)
        #expect(latency.count == 1000)
        // Nine tenths of all are the fast part's, whose slowest took 9 ms.
        #expect(latency[.p50] == 2_000_000)
        #expect(latency[.p90] == 9_000_000)
        #expect(latency[.max] == 90_000_000)
        let values = latency.quantiles.map(\.nanoseconds)
        #expect(values == values.sorted())
    }

    @Test func oneRecordStaysAsItIsAndNoneIsNone() {
        #expect(RunMerger.merged([]) == nil)
        #expect(RunMerger.merged([OutputExample.run()])?.remarks.isEmpty == true)
    }
}
