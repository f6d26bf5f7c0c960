/// What was counted and measured in the phases of a run.
struct Findings {
    let plan: LoadPlan
    var startedAt = 0.0
    var timing = Timing(start: 0, warmUp: 0, seconds: 0)
    var connectSeconds = 0.0
    var measuredSeconds = 0.0
    /// Before anybody connected; when all had joined; from the end of the warm-up to the end of the schedule, and to the
    /// last delivery.
    var before: Usage
    var connected: Usage
    var from: Usage
    var held: Usage
    var to: Usage
    var atStart = Totals()
    var atEnd = Totals()
    var results: [WorkerResult] = []
    var samples: [RunRecord.Sample] = []
    var minutes: [UInt64] = []
    var wasInterrupted = false

    init(_ plan: LoadPlan, before: Usage) {
        self.plan = plan
        self.before = before
        (connected, from, held, to) = (before, before, before, before)
    }

    var count: DeliveryCount {
        var count = DeliveryCount()
        for result in results { count.add(result.count) }
        return count
    }

    var troubles: Troubles {
        var troubles = Troubles()
        for result in results { troubles.add(result.troubles) }
        return troubles
    }

    func sum(_ name: String) -> Double { results.reduce(0) { $0 + ($1.sums[name] ?? 0) } }
    func largest(_ name: String) -> Double? { results.compactMap { $0.maxima[name] }.max() }
    func has(_ name: String) -> Bool { results.contains { $0.sums[name] != nil } }

    /// Those that stalled on purpose and were cut off are no mistake.
    var closedSockets: Int {
        max(0, results.reduce(0) { $0 + $1.closedSockets } - Int(sum("stalled_cut") + sum("stalled_closed_later")))
    }

    var refusedSockets: Int { results.reduce(0) { $0 + $1.refusedSockets } }

    /// Messages that came while it was measured.
    var received: Double { Double(max(1, atEnd.received - atStart.received)) }

    func latency(_ kind: LatencyKind) -> LatencyHistogram? {
        let dumps = results.compactMap { $0.latencies[kind] }
        guard !dumps.isEmpty else { return nil }
        var histogram = LatencyHistogram()
        for dump in dumps { histogram.add(dump) }
        return histogram
    }
}
