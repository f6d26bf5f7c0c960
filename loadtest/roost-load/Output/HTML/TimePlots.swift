/// What happened second by second.
struct TimePlots {
    private let samples: [RunRecord.Sample]
    private let processes: [String]
    private let latencyTitle: String
    private let time: Axis

    /// More lines than colours tell nobody anything.
    private static let processLimit = StyleSheet.seriesCount

    init(_ record: RunRecord) {
        samples = record.samples.filter(\.seconds.isFinite).sorted { $0.seconds < $1.seconds }
        var (names, seen) = ([String](), Set<String>())
        for process in samples.flatMap(\.processes) where seen.insert(process.name).inserted {
            names.append(process.name)
        }
        processes = names
        latencyTitle = record.latencies.first?.title ?? ""
        let first = samples.first?.seconds ?? 0
        time = .time(first...max(first + 1, samples.last?.seconds ?? 0))
    }

    var plots: [Plot] {
        guard samples.count > 1 else { return [] }
        let shown = [latency, received, sent, cpu, memory, sockets, errors].compactMap { $0 }
        return shown.filter { $0.series.contains { !$0.values.isEmpty } }
    }

    private var latency: Plot? {
        let series = [
            line("p50") { $0.p50.map { Double($0) } }, line("p99") { $0.p99.map { Double($0) } },
            line("slowest") { $0.slowest.map { Double($0) } },
        ]
        let title = "Latency over time" + (latencyTitle.isEmpty ? "" : ": \(latencyTitle)")
        return plot(
            "latency", title, "Of the deliveries of each second: the median, the 99th percentile and the slowest.",
            series,
            .latency(of: series.flatMap(\.values)))
    }

    private var received: Plot? {
        rate("received", "Received", "Messages that reached a client in each second.") { $0.received }
    }

    /// Apart from what was received: a fan-out to thousands would press it to the ground.
    private var sent: Plot? {
        rate("sent", "Sent", "Messages sent in each second.") { $0.sent }
    }

    private var errors: Plot? {
        rate("errors", "Errors", "Errors in each second.") { $0.errors }
    }

    private var sockets: Plot? {
        let series = [line("open") { Double($0.sockets) }, line("joined") { Double($0.joined) }]
        let axis = Axis.amount(of: series.flatMap(\.values), title: "sockets", text: { Amount.text($0) })
        return plot(
            "sockets", "Sockets over time", "Sockets that are open, and those that have joined.", series, axis)
    }

    private var cpu: Plot? {
        let series = perProcess(\.cpuPercent)
        let axis = Axis.amount(of: series.flatMap(\.values), title: "CPU, % of a core", text: { Amount.percent($0) })
        return plot("cpu", "CPU over time", "The CPU that each process takes, in percent of one core.", series, axis)
    }

    private var memory: Plot? {
        let series = perProcess(\.memoryKB)
        return plot(
            "memory", "Memory over time", "The memory that each process has.", series,
            .memory(of: series.flatMap(\.values)))
    }

    private func rate(
        _ name: String, _ title: String, _ description: String, _ count: (RunRecord.Sample) -> Int
    ) -> Plot? {
        // A line along the ground says no more than its absence.
        guard samples.contains(where: { count($0) != 0 }) else { return nil }
        let series = [line(name) { Double(count($0)) }]
        let axis = Axis.amount(of: series[0].values, title: "per second", text: { Amount.text($0, unit: "/s") })
        return plot(name, "\(title) over time", description, series, axis)
    }

    private func line(_ name: String, _ value: (RunRecord.Sample) -> Double?) -> Series {
        Series(name, samples.map { .init(x: $0.seconds, y: value($0)) })
    }

    private func perProcess(_ value: (RunRecord.Sample.Process) -> Double) -> [Series] {
        processes.prefix(Self.processLimit).map { name in
            line(name) { sample in sample.processes.first { $0.name == name }.map(value) }
        }
    }

    private func plot(_ name: String, _ title: String, _ description: String, _ series: [Series], _ axis: Axis) -> Plot
    {
        var notes: [String] = []
        if time.scale.range.lowerBound < 0 {
            notes.append("The grey part is before the measurement; the figures above leave it out.")
        }
        if samples.count > PlotDrawing.pointLimit {
            let seconds = (time.scale.range.upperBound - time.scale.range.lowerBound) / Double(PlotDrawing.stretches)
            notes.append(
                "Drawn in stretches of \(Decimal.text(seconds, digits: seconds < 10 ? 1 : 0)) s: the line is the median of the samples of each, the shade "
                    + "reaches from the least to the greatest.")
        }
        if processes.count > Self.processLimit, name == "cpu" || name == "memory" {
            notes.append("\(processes.count - Self.processLimit) more processes are only in the record.")
        }
        return Plot(
            name: name, title: title, description: description, horizontal: time, vertical: axis, series: series,
            note: notes.joined(separator: " "), legend: Plot.summary(of: series, axis.text))
    }
}

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
