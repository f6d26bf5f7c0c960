import Glibc

/// One side of a plot: its scale, and how values on it are written.
struct Axis {
    struct Tick {
        let value: Double
        let label: String
    }

    let title: String
    let scale: Scale
    let ticks: [Tick]
    /// A value with its unit, for tables and for whoever points at it.
    let text: @Sendable (Double) -> String

    /// Nanoseconds, logarithmic: latencies spread over magnitudes.
    static func latency(of values: [Double]) -> Axis {
        // What a clock cannot tell from nothing would stretch the axis down to it.
        let positive = values.filter { $0 >= 1 }
        let range = (positive.min() ?? 1e6)...(positive.max() ?? 1e7)
        let ticks = Ticks.logarithmic(range)
        // A label for each of many would be a wall of them.
        let labelled = ticks.count > 8 ? ticks.filter(Ticks.isPowerOfTen) : ticks
        return Axis(
            title: "latency", scale: .logarithmic(ticks[0]...ticks[ticks.count - 1]),
            ticks: labelled.map { Tick(value: $0, label: nanoseconds($0)) },
            text: { Decimal.duration(nanoseconds: UInt64(min(max($0, 0), 9e18))) })
    }

    /// From zero, so that heights may be compared.
    static func amount(of values: [Double], title: String, text: @escaping @Sendable (Double) -> String) -> Axis {
        let ticks = Ticks.linear(upTo: values.max() ?? 0)
        return Axis(
            title: title, scale: .linear(0...ticks[ticks.count - 1]),
            ticks: ticks.map { Tick(value: $0, label: Amount.short($0)) }, text: text)
    }

    /// Of values in kilobytes.
    static func memory(of values: [Double]) -> Axis {
        let unit = MemoryUnit(fitting: values.max() ?? 0)
        let ticks = Ticks.linear(upTo: (values.max() ?? 0) / unit.kilobytes)
        return Axis(
            title: "memory, \(unit.rawValue)", scale: .linear(0...ticks[ticks.count - 1] * unit.kilobytes),
            ticks: ticks.map { Tick(value: $0 * unit.kilobytes, label: Amount.short($0)) },
            text: { Amount.memory(kilobytes: $0) })
    }

    static func time(_ range: ClosedRange<Double>) -> Axis {
        Axis(
            title: (range.upperBound < 3600 ? "min:s" : "h:min:s") + " since the start of the measurement",
            scale: .linear(range),
            ticks: Ticks.time(range).map { Tick(value: $0, label: Amount.clock(seconds: $0)) },
            text: { Amount.clock(seconds: $0) })
    }

    /// Of shares as `nines(of:)` has them: every power of ten of the values that are slower gets the same room.
    static func percentile(upTo nines: Double) -> Axis {
        let last = max(1, nines)
        let whole = (0...Int(last)).map { Tick(value: Double($0), label: percent(nines: Double($0))) }
        let median = Tick(value: log10(2), label: "50 %")
        return Axis(
            title: "share of all values that are not slower", scale: .linear(0...last),
            // The median has the room that the label of 0 % would need.
            ticks: [Tick(value: 0, label: ""), median] + whole.dropFirst(), text: { percent(nines: $0) })
    }

    /// 1 for 90 %, 2 for 99 %. The largest of `count` values stands for the last of them: 100 % lies nowhere.
    static func nines(of share: Double, count: Int) -> Double {
        min(-log10(max(1 - share, 1e-300)), log10(Double(max(1, count))))
    }

    private static func percent(nines: Double) -> String {
        let digits = max(0, Int(nines.rounded(.up)) - (nines == nines.rounded() ? 2 : 1))
        return Decimal.text(100 * (1 - pow(10, -nines)), digits: min(9, digits)) + " %"
    }

    private static func nanoseconds(_ value: Double) -> String {
        let units: [(Double, String)] = [(1e9, " s"), (1e6, " ms"), (1e3, " µs")]
        guard let unit = units.first(where: { value >= $0.0 * 0.999_999 }) else { return Amount.trimmed(value) + " ns" }
        return Amount.short((value / unit.0 * 1000).rounded() / 1000) + unit.1
    }
}
