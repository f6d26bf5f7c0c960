/// Makes one sample a second of what the workers report and the watched processes use.
struct Sampler {
    private let processes: [WatchedProcess]
    private(set) var samples: [RunRecord.Sample] = []
    /// The moment that the samples' seconds count from, by `MonotonicClock`.
    var zero: UInt64 = .max
    private var shown = Totals()
    private var usage: Usage
    private var second = LatencyHistogram(digits: .two)
    private var minute = LatencyHistogram()
    private var minuteEnd = 60.0
    /// The 99th percentile of each full minute of the measurement, of the first kind of latency.
    private(set) var minutes: [UInt64] = []

    init(_ processes: [WatchedProcess]) {
        self.processes = processes
        usage = Usage(living: processes)
    }

    mutating func add(_ latencies: HistogramDump) {
        second.add(latencies)
        minute.add(latencies)
    }

    mutating func sample(_ totals: Totals) -> RunRecord.Sample {
        let usage = Usage(living: processes)
        let seconds = zero == .max ? -1 : (Double(usage.moment) - Double(zero)) / 1e9
        var sample = RunRecord.Sample(
            seconds: seconds, sockets: totals.sockets, joined: totals.joined, sent: totals.sent - shown.sent,
            received: totals.received - shown.received, errors: totals.errors - shown.errors, p50: second.quantile(0.5),
            p99: second.quantile(0.99), slowest: second.count > 0 ? second.largest : nil)
        let elapsed = max(usage.seconds(since: self.usage), 0.001)
        sample.processes = usage.processes.map { process in
            RunRecord.Sample.Process(
                name: process.name, cpuPercent: (usage.cpu(of: process.name, since: self.usage) ?? 0) / elapsed / 1e4,
                memoryKB: process.usage.residentKilobytes)
        }
        self.usage = usage
        shown = totals
        second.reset()
        closeMinute(at: seconds)
        samples.append(sample)
        return sample
    }

    private mutating func closeMinute(at seconds: Double) {
        if seconds < 0 { minute.reset() }
        guard seconds >= minuteEnd else { return }
        if let quantile = minute.quantile(0.99) { minutes.append(quantile) }
        minute.reset()
        minuteEnd += 60
    }

    /// Samples that were taken before anybody knew when the measurement begins.
    mutating func setZero(_ moment: UInt64) {
        zero = moment
        let last = (Double(MonotonicClock.now) - Double(moment)) / 1e9
        for index in samples.indices { samples[index].seconds = last - Double(samples.count - 1 - index) }
    }
}
