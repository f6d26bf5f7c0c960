/// Latency by percentile: how slow the slowest tenth, hundredth, thousandth … is.
enum PercentilePlot {
    static func plot(of latencies: [RunRecord.Latency]) -> Plot? {
        let latencies = latencies.filter { $0.count > 0 && !$0.quantiles.isEmpty }
        guard let most = latencies.map(\.count).max() else { return nil }
        let series = latencies.map { latency in
            Series(
                latency.title,
                latency.quantiles.filter(\.share.isFinite).map {
                    .init(x: Axis.nines(of: $0.share, count: latency.count), y: Double($0.nanoseconds))
                })
        }
        let vertical = Axis.latency(of: series.flatMap(\.values))
        let columns = LatencyPercentile.allCases
        return Plot(
            name: "percentiles", title: "Latency by percentile",
            description: "Latency grows with the share of values; the legend has its percentiles.",
            horizontal: .percentile(upTo: Axis.nines(of: 1, count: most)), vertical: vertical, series: series,
            note: "Both axes are logarithmic; a line ends where its slowest value is.",
            legend: .init(
                columns: columns.map(\.rawValue),
                rows: latencies.map { latency in columns.map { latency[$0].map(Decimal.duration) ?? "–" } }))
    }
}
