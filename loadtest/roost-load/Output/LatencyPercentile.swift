/// The points of a latency distribution that are reported.
enum LatencyPercentile: String, CaseIterable {
    case p50
    case p90
    case p99
    case p999 = "p99.9"
    case max

    var share: Double {
        switch self {
        case .p50: 0.5
        case .p90: 0.9
        case .p99: 0.99
        case .p999: 0.999
        case .max: 1
        }
    }
}

extension RunRecord.Latency {
    /// Nanoseconds that `share` of all values do not exceed, rounded up to the next quantile that was kept; nil without values.
    func nanoseconds(at share: Double) -> UInt64? {
        guard count > 0 else { return nil }
        // 0.99 may have been computed as 1 - 0.01.
        return (quantiles.first { $0.share >= share - 1e-12 } ?? quantiles.last)?.nanoseconds
    }

    subscript(percentile: LatencyPercentile) -> UInt64? { nanoseconds(at: percentile.share) }
}
