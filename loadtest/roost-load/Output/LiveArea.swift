/// Lines at the end of a terminal that are written anew in place. Between two frames the cursor stands at the start of the line
/// below them and no mode is changed, so a program that dies leaves a whole terminal.
struct LiveArea {
    /// The columns of each line that stands there.
    private var drawn: [Int] = []

    /// What the terminal must be sent to show `lines` instead, with `above` left standing for good.
    mutating func frame(_ lines: [StyledLine], above: String = "", columns: Int, colours: Bool) -> String {
        var text = erasure(columns: columns) + above
        for line in lines { text += line.text(colours: colours) + "\n" }
        drawn = lines.map(\.columns)
        return text
    }

    /// What removes it.
    mutating func removal(columns: Int) -> String {
        defer { drawn = [] }
        return erasure(columns: columns)
    }

    private func erasure(columns: Int) -> String {
        guard !drawn.isEmpty else { return "" }
        // A window that has become narrower has broken lines in two.
        let rows = drawn.reduce(0) { $0 + max(1, ($1 + columns - 1) / max(1, columns)) }
        return "\u{1B}[\(rows)A\r\u{1B}[J"
    }
}
