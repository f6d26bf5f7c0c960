import Histogram

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

/// What is measured, from when to when.
enum LatencyKind: Int, CaseIterable, Codable, Sendable {
    case commit, schedule, broadcast, sent, typing, presence, join, back

    /// The prefix of its figures.
    var name: String {
        switch self {
        case .commit: "commit"
        case .schedule: "schedule"
        case .broadcast: "broadcast"
        case .sent: "sent"
        case .typing: "typing"
        case .presence: "presence"
        case .join: "join"
        case .back: "back"
        }
    }

    var title: String {
        switch self {
        case .commit: "commit → client"
        case .schedule: "row due → client"
        case .broadcast: "broadcast due → client"
        case .sent: "broadcast sent → client"
        case .typing: "typing due → client"
        case .presence: "presence due → client"
        case .join: "connect → joined"
        case .back: "cut off → joined again"
        }
    }
}

/// Nanoseconds, from 0 to an hour; three digits are exact.
struct LatencyHistogram {
    private static let longest: UInt64 = 3_600_000_000_000
    private var counts: Histogram<UInt64>

    init(digits: SignificantDigits = .three) {
        counts = Histogram(
            lowestDiscernibleValue: 100, highestTrackableValue: Self.longest, numberOfSignificantValueDigits: digits)
    }

    var count: Int { Int(counts.totalCount) }
    var largest: UInt64 { counts.totalCount > 0 ? counts.maxRecorded : 0 }

    mutating func add(_ nanoseconds: UInt64) { counts.record(min(nanoseconds, Self.longest)) }

    /// Adds the time from `start` to `end`; zero for an arrival that seems earlier than its cause.
    mutating func add(from start: UInt64, to end: UInt64) { add(end > start ? end - start : 0) }

    mutating func add(_ dump: HistogramDump) {
        for (value, count) in zip(dump.values, dump.counts) { counts.record(min(value, Self.longest), count: count) }
    }

    mutating func reset() { counts.reset() }

    /// The value that `share` of all do not exceed; nil where there are none.
    func quantile(_ share: Double) -> UInt64? {
        counts.totalCount > 0 ? counts.valueAtPercentile(share * 100) : nil
    }

    var dump: HistogramDump {
        var dump = HistogramDump()
        guard counts.totalCount > 0 else { return dump }
        for value in counts.recordedValues() {
            // The last one is known exactly; the others to their bucket.
            dump.values.append(min(value.value, counts.maxRecorded))
            dump.counts.append(UInt64(value.count))
        }
        return dump
    }
}

/// A histogram on its way to another process.
struct HistogramDump: Codable, Sendable {
    var values: [UInt64] = []
    var counts: [UInt64] = []
}
