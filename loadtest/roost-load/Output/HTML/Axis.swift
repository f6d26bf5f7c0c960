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

    /// An axis from zero, so that heights may be compared.
    static func amount(of values: [Double], title: String, text: @escaping @Sendable (Double) -> String) -> Axis {
        let ticks = Ticks.linear(upTo: values.max() ?? 0)
        return Axis(
            title: title, scale: .linear(0...ticks[ticks.count - 1]),
            ticks: ticks.map { Tick(value: $0, label: Amount.short($0)) }, text: text)
    }

    /// An axis for values in kilobytes.
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

/// The round values at which an axis is labelled.
enum Ticks {
    /// The least of 1, 2 and 5 times a power of ten that makes no more than `count` steps of `span`.
    static func step(for span: Double, count: Int) -> Double {
        guard span.isFinite, span > 0 else { return 1 }
        let rough = span / Double(count)
        let power = pow(10, floor(log10(rough)))
        return [1, 2, 5].map { $0 * power }.first { $0 >= rough * 0.999_999 } ?? 10 * power
    }

    /// Round values from zero to the first that is not below `largest`.
    static func linear(upTo largest: Double, count: Int = 5) -> [Double] {
        guard largest.isFinite, largest > 0 else { return [0, 1] }
        let step = step(for: largest, count: count)
        return (0...Int((largest / step - 1e-9).rounded(.up))).map { Double($0) * step }
    }

    /// Powers of ten with their doubles and fivefolds; the first is not above `range`, the last not below it.
    static func logarithmic(_ range: ClosedRange<Double>) -> [Double] {
        let (low, high) = (Int(floor(log10(range.lowerBound))), Int(ceil(log10(range.upperBound))))
        let all = (low...max(low + 1, high)).flatMap { exponent in [1, 2, 5].map { $0 * pow(10, Double(exponent)) } }
        let first = all.lastIndex { $0 <= range.lowerBound * 1.000_001 } ?? 0
        let last = all.firstIndex { $0 >= range.upperBound * 0.999_999 } ?? all.count - 1
        return Array(all[first...max(last, first + 1)])
    }

    static func isPowerOfTen(_ value: Double) -> Bool {
        let exponent = log10(value)
        return abs(exponent - exponent.rounded()) < 1e-6
    }

    /// Round times in seconds: whole minutes and hours rather than hundreds of seconds.
    static func time(_ range: ClosedRange<Double>, count: Int = 6) -> [Double] {
        let rough = (range.upperBound - range.lowerBound) / Double(count)
        let steps: [Double] = [
            1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400,
        ]
        let step = steps.first { $0 >= rough } ?? Self.step(for: rough, count: 1)
        let first = (range.lowerBound / step).rounded(.up)
        let last = (range.upperBound / step).rounded(.down)
        guard first <= last, last - first < 1000 else { return [range.lowerBound] }
        return (0...Int(last - first)).map { (first + Double($0)) * step }
    }
}

/// Where values lie between the two ends of an axis.
enum Scale {
    case linear(ClosedRange<Double>)
    /// Both ends are above zero.
    case logarithmic(ClosedRange<Double>)

    var range: ClosedRange<Double> {
        switch self {
        case .linear(let range), .logarithmic(let range): range
        }
    }

    /// 0 at the lower end, 1 at the upper; what lies beyond is put at the end.
    func position(of value: Double) -> Double {
        let place =
            switch self {
            case .linear(let range): Self.share(of: value, range.lowerBound, range.upperBound)
            case .logarithmic(let range):
                Self.share(of: log10(max(value, range.lowerBound)), log10(range.lowerBound), log10(range.upperBound))
            }
        return place.isFinite ? min(1, max(0, place)) : 0
    }

    private static func share(of value: Double, _ lower: Double, _ upper: Double) -> Double {
        upper > lower ? (value - lower) / (upper - lower) : 0
    }
}
