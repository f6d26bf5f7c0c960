import Glibc

/// The round values at which an axis is labelled.
enum Ticks {
    /// The least of 1, 2 and 5 times a power of ten that makes no more than `count` steps of `span`.
    static func step(for span: Double, count: Int) -> Double {
        guard span.isFinite, span > 0 else { return 1 }
        let rough = span / Double(count)
        let power = pow(10, floor(log10(rough)))
        return [1, 2, 5].map { $0 * power }.first { $0 >= rough * 0.999_999 } ?? 10 * power
    }

    /// From zero to the first round value that is not below `largest`.
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

    /// Whole minutes and hours rather than hundreds of seconds.
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
