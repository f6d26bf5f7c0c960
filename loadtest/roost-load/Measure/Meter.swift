/// What a worker counts.
struct Meter {
    /// The kind whose percentiles are shown second by second.
    let primary: LatencyKind
    var count = DeliveryCount()
    var sent = 0
    private(set) var received = 0
    private var histograms: [LatencyHistogram?] = LatencyKind.allCases.map { _ in nil }
    private var second = LatencyHistogram(digits: .two)
    /// Latencies of what was due before or after it are not recorded.
    var window: Range<UInt64> = 0..<0

    init(primary: LatencyKind) { self.primary = primary }

    mutating func took() { received += 1 }

    /// A latency that counts from `due`; for the window it is `moment` that decides.
    mutating func record(_ kind: LatencyKind, from start: UInt64, to end: UInt64, due moment: UInt64) {
        guard window.contains(moment) else { return }
        recordAlways(kind, from: start, to: end)
    }

    /// Whenever it was.
    mutating func recordAlways(_ kind: LatencyKind, from start: UInt64, to end: UInt64) {
        let index = kind.rawValue
        if histograms[index] == nil { histograms[index] = LatencyHistogram() }
        histograms[index]?.add(from: start, to: end)
        if kind == primary { second.add(from: start, to: end) }
    }

    /// The primary latencies since the last call.
    mutating func takeSecond() -> HistogramDump {
        defer { if second.count > 0 { second.reset() } }
        return second.dump
    }

    var dumps: [LatencyKind: HistogramDump] {
        var dumps: [LatencyKind: HistogramDump] = [:]
        for kind in LatencyKind.allCases { dumps[kind] = histograms[kind.rawValue]?.dump }
        return dumps
    }
}
