/// The points of a latency distribution that are reported and that `--expect` may name.
struct Percentiles {
    static let names = ["p50", "p90", "p99", "p99.9", "max"]
    let nanoseconds: [UInt64]

    init(_ histogram: Histogram) {
        nanoseconds = [0.5, 0.9, 0.99, 0.999].map(histogram.quantile) + [histogram.largest]
    }

    subscript(name: String) -> UInt64? {
        Self.names.firstIndex(of: name).map { nanoseconds[$0] }
    }

    var text: String {
        zip(Self.names, nanoseconds).map { "\($0) \(Decimal.duration(nanoseconds: $1))" }.joined(separator: "   ")
    }

    func write(to line: inout ResultLine, prefix: String) {
        for (name, value) in zip(Self.names, nanoseconds) {
            line.add("\(prefix)_\(name)_us", Double(value) / 1000)
        }
    }
}
