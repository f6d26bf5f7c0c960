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

/// Whether a run fulfils what was expected of it and what is expected of every run.
struct Outcome {
    enum Verdict { case passed, failed, open }

    let verdict: Verdict
    let sentence: String

    init(of record: RunRecord) {
        let missed = record.expectations.count { !$0.holds }
        let checks = record.figures.filter(\.isCheck)
        let broken = checks.count { $0.value != 0 }
        verdict =
            missed + broken > 0 ? .failed : record.expectations.isEmpty && checks.isEmpty ? .open : .passed
        var parts: [String] = []
        if !checks.isEmpty { parts.append(Self.part(of: checks.count, "check", "fails", "fail", broken)) }
        if !record.expectations.isEmpty {
            parts.append(Self.part(of: record.expectations.count, "expectation", "is missed", "are missed", missed))
        }
        sentence = parts.isEmpty ? "Nothing was checked or expected." : parts.joined(separator: ", ") + "."
    }

    private static func part(of all: Int, _ noun: String, _ one: String, _ many: String, _ bad: Int) -> String {
        if bad > 0 { return "\(bad) of \(all) \(noun)s \(bad == 1 ? one : many)" }
        return all == 1 ? "1 \(noun) holds" : "\(all) \(noun)s hold"
    }
}

/// Rows of cells in aligned columns, for a terminal or a file.
struct TextTable {
    enum Alignment { case left, right }

    var columns: [Alignment]
    var rows: [[String]] = []

    /// Two spaces stand between columns. Where `width` does not suffice, the widest left columns are cut.
    func lines(width: Int, indent: Int = 0) -> [String] {
        let rows = rows.map { $0.map(VisibleText.of) }
        var widths = columns.indices.map { column in
            rows.map { column < $0.count ? VisibleText.columns($0[column]) : 0 }.max() ?? 0
        }
        var excess = indent + widths.reduce(0, +) + 2 * (columns.count - 1) - width
        let left = columns.indices.filter { columns[$0] == .left }
        while excess > 0, let widest = left.max(by: { widths[$0] < widths[$1] }), widths[widest] > 8 {
            widths[widest] -= 1
            excess -= 1
        }
        return rows.map { row in
            var line = String(repeating: " ", count: indent)
            for (column, cell) in row.prefix(columns.count).enumerated() {
                if column > 0 { line += "  " }
                let cell = VisibleText.cut(cell, to: widths[column])
                let space = String(repeating: " ", count: widths[column] - VisibleText.columns(cell))
                line += columns[column] == .left ? cell + space : space + cell
            }
            while line.last == " " { line.removeLast() }
            return line
        }
    }
}
