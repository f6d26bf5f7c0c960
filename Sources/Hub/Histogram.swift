/// Counts durations by size. A plain value owned by the code that measures; sums are computed on request.
///
/// As in Prometheus, a bucket has an upper bound, and the last one has none.
package struct Histogram: Sendable, Equatable {
    /// Nanoseconds, ascending.
    package let bounds: [Int64]
    /// One more than bounds; not cumulative.
    package private(set) var counts: [Int]
    /// Nanoseconds.
    package private(set) var sum: Int64 = 0

    private init(milliseconds bounds: [Double]) {
        self.bounds = bounds.map { Int64($0 * 1e6) }
        counts = [Int](repeating: 0, count: bounds.count + 1)
    }

    /// Delays from a commit to a client, and of everything else that waits for Postgres.
    package static let ofLatency = Histogram(
        milliseconds: [0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 120_000])
    /// Turns of a loop.
    package static let ofTurns = Histogram(
        milliseconds: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 1000])

    package var count: Int { counts.reduce(0, +) }

    package mutating func recordDuration(nanoseconds: Int64) {
        // There are few bounds, and most values are below the first ones.
        var place = 0
        while place < bounds.count, nanoseconds > bounds[place] { place += 1 }
        counts[place] += 1
        sum += nanoseconds
    }

    /// Adds the counts of another histogram with the same bounds.
    package mutating func addCounts(_ other: Histogram) {
        precondition(bounds == other.bounds, "histograms of different bounds have no sum")
        for place in counts.indices { counts[place] += other.counts[place] }
        sum += other.sum
    }

    /// Returns what was counted since `earlier`, an earlier copy of this histogram.
    package func changeSince(_ earlier: Histogram) -> Histogram {
        precondition(bounds == earlier.bounds, "histograms of different bounds have no difference")
        var difference = self
        for place in counts.indices { difference.counts[place] -= earlier.counts[place] }
        difference.sum -= earlier.sum
        return difference
    }

    /// Estimates the value below which this share lies, in nanoseconds, assuming that values are spread evenly in a
    /// bucket. Nil if nothing was recorded; values beyond the last bound count as that bound.
    package func estimate(_ share: Double) -> Double? {
        let total = count
        guard total > 0 else { return nil }
        let wanted = max(share * Double(total), 1)
        var seen = 0.0
        var lower = 0.0
        for (bound, count) in zip(bounds, counts) {
            if count > 0, seen + Double(count) >= wanted {
                return lower + (Double(bound) - lower) * (wanted - seen) / Double(count)
            }
            seen += Double(count)
            lower = Double(bound)
        }
        return lower
    }

    /// Returns the bound below which this share lies, in nanoseconds; nil if nothing was recorded, or if it is beyond
    /// the last bound.
    package func quantile(_ share: Double) -> Int64? {
        let wanted = Int((share * Double(count)).rounded(.up))
        guard wanted > 0 else { return nil }
        var seen = 0
        for (bound, count) in zip(bounds, counts) {
            seen += count
            if seen >= wanted { return bound }
        }
        return nil
    }
}
