import ArgumentParser

/// A bound on a figure or a percentile: `p99<10ms`, `typing_p99<20ms`, `lost<1`, `delivered>1000`.
struct Expectation: ExpressibleByArgument, Sendable {
    enum Comparison: String, CaseIterable {
        case atMost = "<="
        case atLeast = ">="
        case below = "<"
        case above = ">"
    }
    let metric: String
    let comparison: Comparison
    /// In the figure's unit; latencies in nanoseconds.
    let limit: Double
    let isTime: Bool
    let text: String

    init?(argument: String) {
        let plain = argument.filter { $0 != " " }
        guard let comparison = Comparison.allCases.first(where: { plain.contains($0.rawValue) }),
            let sign = plain.firstRange(of: comparison.rawValue)
        else { return nil }
        let right = plain[sign.upperBound...]
        let digits = right.prefix { $0.isASCII && $0.isNumber || $0 == "." }
        let units: [Substring: Double] = ["ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9]
        let unit = right.dropFirst(digits.count)
        guard let number = Double(digits), unit.isEmpty || unit == "%" || unit == "KB" || units[unit] != nil,
            sign.lowerBound > plain.startIndex
        else { return nil }
        metric = String(plain[..<sign.lowerBound])
        self.comparison = comparison
        isTime = units[unit] != nil
        limit = number * (units[unit] ?? 1)
        text = argument
    }

    func holds(for value: Double) -> Bool {
        switch comparison {
        case .atMost: value <= limit
        case .atLeast: value >= limit
        case .below: value < limit
        case .above: value > limit
        }
    }
}
