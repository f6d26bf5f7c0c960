/// The table that stands on a terminal when a run is over.
enum ResultTable {
    private static let width = 100

    static func text(of record: RunRecord) -> String {
        let blocks = [
            head(record), latencies(record), figures(record), checks(record), expectations(record), remarks(record),
            verdict(record),
        ]
        return blocks.filter { !$0.isEmpty }.map { $0.joined(separator: "\n") }.joined(separator: "\n\n")
    }

    private static func head(_ record: RunRecord) -> [String] {
        let seconds = Amount.text(record.measuredSeconds)
        return VisibleText.wrapped(
            VisibleText.of("\(record.scenario) against \(record.target), \(seconds) s measured"), to: width)
    }

    private static func latencies(_ record: RunRecord) -> [String] {
        guard !record.latencies.isEmpty else { return [] }
        var table = TextTable(columns: [.left, .right] + LatencyPercentile.allCases.map { _ in .right })
        table.rows.append(["Latency", "count"] + LatencyPercentile.allCases.map(\.rawValue))
        for latency in record.latencies {
            table.rows.append(
                [latency.title, Amount.count(latency.count)]
                    + LatencyPercentile.allCases.map { latency[$0].map(Decimal.duration) ?? "–" })
        }
        return table.lines(width: width)
    }

    private static func figures(_ record: RunRecord) -> [String] {
        rows(record.figures.filter { !$0.isCheck }, mark: { _ in "" })
    }

    private static func checks(_ record: RunRecord) -> [String] {
        let lines = rows(record.figures.filter(\.isCheck), mark: { $0.value == 0 ? "" : "not zero" })
        return lines.isEmpty ? [] : ["Checks"] + lines.map { "  " + $0 }
    }

    /// Numbers end in one column, their units begin in another.
    private static func rows(_ figures: [RunRecord.Figure], mark: (RunRecord.Figure) -> String) -> [String] {
        var table = TextTable(columns: [.left, .right, .left, .left])
        for figure in figures where !figure.title.isEmpty {
            table.rows.append([figure.title, Amount.text(figure.value), figure.unit, mark(figure)])
        }
        return table.lines(width: width - 2)
    }

    private static func expectations(_ record: RunRecord) -> [String] {
        guard !record.expectations.isEmpty else { return [] }
        var table = TextTable(columns: [.left, .left, .left])
        for verdict in record.expectations {
            table.rows.append([verdict.holds ? "holds" : "MISSED", verdict.text, "found \(verdict.found)"])
        }
        return ["Expectations"] + table.lines(width: width, indent: 2)
    }

    private static func verdict(_ record: RunRecord) -> [String] {
        let outcome = Outcome(of: record)
        return switch outcome.verdict {
        case .passed: ["Passed: \(outcome.sentence)"]
        case .failed: ["FAILED: \(outcome.sentence)"]
        case .open: []
        }
    }

    private static func remarks(_ record: RunRecord) -> [String] {
        record.remarks.flatMap { remark in
            VisibleText.wrapped(VisibleText.of(remark), to: width - 2).enumerated().map { ($0 == 0 ? "- " : "  ") + $1 }
        }
    }
}
