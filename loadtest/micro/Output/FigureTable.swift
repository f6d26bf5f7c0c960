/// Figures for people, as a Markdown table.
struct FigureTable {
    let figures: [Figure]

    private static let head = [
        "operation", "CPU ns (median)", "least", "instructions", "allocations", "bytes", "million pairs/s",
    ]

    var text: String {
        let rows = [Self.head] + figures.map(cells)
        let widths = Self.head.indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        var lines = rows.map { row in
            let cells = zip(row, widths).enumerated().map { column, cell in
                let (text, width) = cell
                let space = String(repeating: " ", count: width - text.count)
                return column == 0 ? text + space : space + text
            }
            return "| " + cells.joined(separator: " | ") + " |"
        }
        let rule = widths.enumerated().map { column, width in
            String(repeating: "-", count: width + (column == 0 ? 2 : 1)) + (column == 0 ? "" : ":")
        }
        lines.insert("|" + rule.joined(separator: "|") + "|", at: 1)
        return lines.joined(separator: "\n")
    }

    private func cells(_ figure: Figure) -> [String] {
        [
            figure.name,
            figure.time.map { FixedText.of($0.median, $0.median < 100 ? 1 : 0) } ?? "",
            figure.time.map { FixedText.of($0.least, $0.least < 100 ? 1 : 0) } ?? "",
            figure.time?.instructions.map { FixedText.of($0, 0) } ?? "",
            FixedText.of(figure.allocations, 2), FixedText.of(figure.bytes, 0),
            figure.time?.pairsPerSecond.map { FixedText.of($0 / 1e6, 1) } ?? "",
        ]
    }
}
