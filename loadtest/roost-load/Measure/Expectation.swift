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
    /// The bound: nanoseconds for a latency, else in the figure's unit.
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

extension Expectation {
    private static let percentiles: [String: Double] = ["p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999, "max": 1]

    func verdict(on record: RunRecord) -> RunRecord.Verdict {
        if let (latency, share) = percentile(of: record) {
            guard isTime else {
                return RunRecord.Verdict(
                    text: text, holds: false,
                    found: "a time, so the bound needs a unit, such as 10ms")
            }
            guard let value = latency.nanoseconds(at: share) else {
                return RunRecord.Verdict(text: text, holds: false, found: "nothing measured")
            }
            return RunRecord.Verdict(
                text: text, holds: holds(for: Double(value)), found: Decimal.duration(nanoseconds: value))
        }
        guard let figure = record.figures.first(where: { $0.name == metric }) else {
            let known = record.figures.map(\.name).joined(separator: ", ")
            return RunRecord.Verdict(
                text: text, holds: false, found: "no such figure; there are p50, p99, … and \(known)")
        }
        // Figures that are times are in µs or s by their unit.
        let units: [String: Double] = ["µs": 1e3, "ms": 1e6, "s": 1e9]
        let scale = isTime ? units[figure.unit] ?? 1 : 1
        let digits = figure.value == figure.value.rounded() ? 0 : 3
        return RunRecord.Verdict(
            text: text, holds: holds(for: figure.value * scale),
            found: Decimal.text(figure.value, digits: digits) + (figure.unit.isEmpty ? "" : " \(figure.unit)"))
    }

    /// `p99` is the first latency's, `typing_p99` one of its own.
    private func percentile(of record: RunRecord) -> (RunRecord.Latency, Double)? {
        if let share = Self.percentiles[metric], let first = record.latencies.first { return (first, share) }
        for latency in record.latencies where metric.hasPrefix(latency.name + "_") {
            if let share = Self.percentiles[String(metric.dropFirst(latency.name.count + 1))] {
                return (latency, share)
            }
        }
        return nil
    }
}
