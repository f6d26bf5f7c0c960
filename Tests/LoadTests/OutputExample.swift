@testable import roost_load

/// Records to be shown.
enum OutputExample {
    static let hostile = "<script>\"'&\u{1B}[31m\u{0}\u{202E}x\r\n</script></title>"

    static func run(samples: Int = 3) -> RunRecord {
        var record = RunRecord(scenario: "fanout", target: "ws://127.0.0.1:4000", startedAt: 1_763_819_000)
        record.measuredSeconds = 60
        record.figures = [
            .init(name: "delivered", value: 1_203_344, title: "deliveries"),
            .init(name: "hub_cpu_us_per_delivery", value: 7.1234, unit: "µs", title: "hub's CPU per delivery"),
            .init(name: "secret", value: 3), .init(name: "lost", value: 0, title: "lost", isCheck: true),
        ]
        record.latencies = [latency("commit", count: 1000)]
        record.samples = (0..<samples).map { second in
            var sample = RunRecord.Sample(seconds: Double(second), sockets: 100, joined: 100)
            sample.sent = 10
            sample.received = 1000 + second
            sample.p50 = 1_000_000
            sample.p99 = 5_000_000
            sample.slowest = 9_000_000
            sample.processes = [.init(name: "hub", cpuPercent: 50, memoryKB: 40_960)]
            return sample
        }
        return record
    }

    static func latency(_ name: String, count: Int, factor: UInt64 = 1) -> RunRecord.Latency {
        RunRecord.Latency(
            title: "\(name) → client", name: name, count: count,
            quantiles: [
                (0, 100_000), (0.5, 1_000_000), (0.9, 2_000_000), (0.99, 5_000_000), (0.999, 8_000_000), (1, 9_000_000),
            ]
            .map { .init(share: $0, nanoseconds: $1 * factor) })
    }

    /// Everything in it is wrong or meant to break out.
    static func broken() -> RunRecord {
        var record = RunRecord(scenario: hostile, target: hostile, startedAt: .nan)
        record.measuredSeconds = .infinity
        record.command = [hostile, "", "it's"]
        record.conditions = [.init(name: hostile, value: hostile)]
        record.figures = [
            .init(name: hostile, value: .nan, unit: hostile, title: hostile),
            .init(name: "scenario", value: 1, title: "huge"), .init(name: "huge", value: -1e300, title: "huge"),
            .init(name: "huge", value: 2, title: "huge"), .init(name: "expectations", value: 2),
        ]
        record.latencies = [
            .init(
                title: hostile, name: hostile, count: 1,
                quantiles: [.init(share: .nan, nanoseconds: 0), .init(share: 1, nanoseconds: .max)]),
            .init(title: "none", name: "none", count: 0, quantiles: []),
        ]
        record.samples = (0..<10).map { index in
            var sample = RunRecord.Sample(
                seconds: index == 3 ? .nan : Double(10 - index) * 1e6, sockets: .max, joined: .min)
            sample.p50 = index % 2 == 0 ? .max : nil
            sample.slowest = 0
            sample.processes = (0..<index).map {
                .init(name: "\(hostile)\($0)", cpuPercent: .infinity, memoryKB: -1e300)
            }
            return sample
        }
        record.expectations = [.init(text: hostile, holds: false, found: hostile)]
        record.remarks = [hostile, String(repeating: "y", count: 300)]
        return record
    }
}
