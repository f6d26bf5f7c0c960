/// Makes one record of several: of processes or machines that loaded the same target at the same time.
enum RunMerger {
    /// Nil without records. What describes the run is taken from the first.
    static func merged(_ records: [RunRecord]) -> RunRecord? {
        guard var merged = records.first else { return nil }
        guard records.count > 1 else { return merged }
        merged.startedAt = records.map(\.startedAt).min() ?? merged.startedAt
        merged.measuredSeconds = records.map(\.measuredSeconds).max() ?? merged.measuredSeconds
        merged.samples = samples(records)
        merged.latencies = names(records.flatMap(\.latencies).map(\.name)).compactMap { name in
            latency(records.flatMap(\.latencies).filter { $0.name == name })
        }
        merged.expectations = records.flatMap(\.expectations)
        merged.remarks = records.flatMap(\.remarks)
        merged.remarks.append(
            "Merged from \(records.count) records: percentiles are rounded up, and over time the slowest part's stand.")
        merged.figures = []
        for name in names(records.flatMap(\.figures).map(\.name)) {
            let parts = records.flatMap(\.figures).filter { $0.name == name }
            if let sum = sum(parts) {
                merged.figures.append(sum)
            } else {
                merged.remarks.append("\(name) cannot be added up: look for it in the single records.")
            }
        }
        return merged
    }

    private static func names(_ all: [String]) -> [String] {
        var seen = Set<String>()
        return all.filter { seen.insert($0).inserted }
    }

    /// Counts and rates add up; nobody knows whether µs or percent do.
    private static func sum(_ parts: [RunRecord.Figure]) -> RunRecord.Figure? {
        guard var sum = parts.first else { return nil }
        guard parts.count > 1 else { return sum }
        guard parts.allSatisfy({ $0.unit.isEmpty || $0.unit == "/s" }) else { return nil }
        sum.value = parts.reduce(0) { $0 + $1.value }
        return sum
    }

    /// Between two quantiles that a part has kept, its values are taken for the upper one.
    private static func latency(_ parts: [RunRecord.Latency]) -> RunRecord.Latency? {
        guard var merged = parts.first else { return nil }
        let present = parts.filter { $0.count > 0 && !$0.quantiles.isEmpty }
        merged.count = present.reduce(0) { $0 + $1.count }
        let shares = Set(present.flatMap(\.quantiles).map(\.share)).sorted()
        let values = Set(present.flatMap(\.quantiles).map(\.nanoseconds)).sorted()
        merged.quantiles = []
        var at = 0
        for share in shares {
            while at + 1 < values.count, Self.share(notAbove: values[at], present, of: merged.count) < share - 1e-12 {
                at += 1
            }
            merged.quantiles.append(.init(share: share, nanoseconds: values[at]))
        }
        return merged
    }

    private static func share(notAbove value: UInt64, _ parts: [RunRecord.Latency], of count: Int) -> Double {
        parts.reduce(0) { sum, part in
            sum + (part.quantiles.last { $0.nanoseconds <= value }?.share ?? 0) * Double(part.count) / Double(count)
        }
    }

    private static func samples(_ records: [RunRecord]) -> [RunRecord.Sample] {
        var merged: [Int: RunRecord.Sample] = [:]
        for (index, record) in records.enumerated() {
            for sample in record.samples {
                guard let second = Int(exactly: sample.seconds.rounded()) else { continue }
                var sample = sample
                // Two machines may give their processes the same names.
                if index > 0 {
                    for process in sample.processes.indices { sample.processes[process].name += " \(index + 1)" }
                }
                merged[second] = merged[second].map { sum($0, sample) } ?? sample
            }
        }
        return merged.sorted { $0.key < $1.key }.map(\.value)
    }

    private static func sum(_ one: RunRecord.Sample, _ other: RunRecord.Sample) -> RunRecord.Sample {
        var sum = one
        sum.sockets += other.sockets
        sum.joined += other.joined
        sum.sent += other.sent
        sum.received += other.received
        sum.errors += other.errors
        sum.p50 = [one.p50, other.p50].compactMap { $0 }.max()
        sum.p99 = [one.p99, other.p99].compactMap { $0 }.max()
        sum.slowest = [one.slowest, other.slowest].compactMap { $0 }.max()
        sum.processes += other.processes
        return sum
    }
}
