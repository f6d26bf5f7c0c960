import ArgumentParser

/// A bound on commit → client, as `p99<10ms`.
struct Expectation: ExpressibleByArgument {
    let metric: String
    let limit: UInt64
    let text: String

    init?(argument: String) {
        let sides = argument.filter { $0 != " " }.split(separator: "<", omittingEmptySubsequences: false)
        guard sides.count == 2, Percentiles.names.contains(String(sides[0])) else { return nil }
        let digits = sides[1].prefix { $0.isNumber || $0 == "." }
        let units: [Substring: Double] = ["us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9]
        guard let value = Double(digits), let unit = units[sides[1].dropFirst(digits.count)] else { return nil }
        metric = String(sides[0])
        limit = UInt64(value * unit)
        text = argument
    }

    /// The sentence for a bound that was missed; nil when it holds.
    func miss(in percentiles: Percentiles) -> String? {
        guard let value = percentiles[metric], value >= limit else { return nil }
        return "expected \(text), but \(metric) was \(Decimal.duration(nanoseconds: value))"
    }
}
