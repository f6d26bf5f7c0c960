import Testing

@testable import roost_load

@Suite struct ExpectationTests {
    private var record: RunRecord {
        var record = RunRecord(scenario: "chat", target: "ws://127.0.0.1", startedAt: 0)
        record.figures = [
            RunRecord.Figure(name: "lost", value: 0), RunRecord.Figure(name: "delivered", value: 5000),
            RunRecord.Figure(name: "hub_join_us", value: 85.5, unit: "µs"),
            RunRecord.Figure(name: "all_back_seconds", value: 1.5, unit: "s"),
        ]
        record.latencies = [latency("commit", 9_000_000), latency("typing", 20_000_000)]
        return record
    }

    private func latency(_ name: String, _ p99: UInt64) -> RunRecord.Latency {
        let quantiles = [(0, 1), (0.5, 2_000_000), (0.99, p99), (1, 2 * p99)].map {
            RunRecord.Latency.Quantile(share: $0.0, nanoseconds: $0.1)
        }
        return RunRecord.Latency(title: name, name: name, count: 1000, quantiles: quantiles)
    }

    @Test(arguments: [
        "p99<10ms", "p50 < 3 ms", "commit_p99<=9ms", "typing_p99<0.03s", "max<18001us", "lost<1", "lost<=0",
        "delivered>4999", "delivered>=5000", "hub_join_us<100us", "hub_join_us<86", "all_back_seconds<2s",
    ])
    func holds(text: String) throws {
        #expect(try #require(Expectation(argument: text)).verdict(on: record).holds)
    }

    @Test(arguments: [
        "p99<9ms", "typing_p99<20ms", "lost>0", "delivered<5000", "hub_join_us<85us", "all_back_seconds<1500ms",
    ])
    func isMissed(text: String) throws {
        let verdict = try #require(Expectation(argument: text)).verdict(on: record)
        #expect(!verdict.holds)
        #expect(verdict.text == text)
    }

    @Test(arguments: ["", "p99", "p99<", "<10ms", "p99<10m", "p99=10ms", "p99<ten", "p99<10ms>5"])
    func isNoBound(text: String) { #expect(Expectation(argument: text) == nil) }

    @Test func whatIsNotThereIsMissed() throws {
        let verdict = try #require(Expectation(argument: "p98<1s")).verdict(on: record)
        #expect(!verdict.holds)
        #expect(verdict.found.hasPrefix("no such figure"))
        #expect(try !#require(Expectation(argument: "p99<10")).verdict(on: record).holds)
    }
}
