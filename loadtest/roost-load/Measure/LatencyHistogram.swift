import Histogram

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

    /// From `start` to `end`; nothing for an arrival that seems earlier than its cause.
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
