/// A line of a terminal, in parts of a colour each.
struct StyledLine {
    enum Style: String {
        case plain = ""
        case faint = "\u{1B}[2m"
        case strong = "\u{1B}[1m"
        case alarm = "\u{1B}[31m"
    }

    private var parts: [(text: String, style: Style)] = []
    private(set) var columns = 0

    mutating func add(_ text: String, _ style: Style = .plain) {
        parts.append((text, style))
        columns += VisibleText.columns(text)
    }

    mutating func add(_ other: StyledLine) {
        parts += other.parts
        columns += other.columns
    }

    /// The same, at most so wide.
    func cut(to limit: Int) -> StyledLine {
        guard columns > limit else { return self }
        var line = StyledLine()
        for part in parts {
            let room = limit - line.columns
            guard room > 0 else { break }
            line.add(VisibleText.cut(part.text, to: room), part.style)
        }
        return line
    }

    func text(colours: Bool) -> String {
        parts.map { part in
            colours && part.style != .plain ? part.style.rawValue + part.text + "\u{1B}[0m" : part.text
        }.joined()
    }
}
