import Glibc

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
