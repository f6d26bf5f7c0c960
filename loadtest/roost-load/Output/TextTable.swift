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
