import Glibc

/// What standard error is shown on.
enum Terminal {
    static var isThere: Bool {
        guard isatty(STDERR_FILENO) == 1 else { return false }
        // It shows text and moves no cursor.
        return variable("TERM") != "dumb"
    }

    /// As https://no-color.org has it.
    static var hasColours: Bool { (variable("NO_COLOR") ?? "").isEmpty }

    /// Asked again for every frame: windows are resized.
    static var size: (columns: Int, rows: Int) {
        var size = winsize()
        guard ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else {
            return (80, 24)
        }
        return (Int(size.ws_col), Int(size.ws_row))
    }

    private static func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
}

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

    /// The same line, cut to at most so many columns.
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

/// Text of others, as a hub's reason or a process' name, made fit to be shown.
enum VisibleText {
    /// Without what moves a cursor, changes colours, breaks a row or turns the direction of reading.
    static func of(_ text: String) -> String {
        var scalars = String.UnicodeScalarView()
        for scalar in text.unicodeScalars { scalars.append(shown(scalar)) }
        return String(scalars)
    }

    private static func shown(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
        switch scalar.value {
        case 0x09, 0x0A, 0x0D, 0x2028, 0x2029: return " "
        case 0..<0x20, 0x7F..<0xA0, 0x200E, 0x200F, 0x202A...0x202E, 0x2066...0x2069, 0xFFFE, 0xFFFF: return "\u{FFFD}"
        default: return scalar
        }
    }

    /// How many columns of a terminal it takes.
    static func columns(_ text: String) -> Int {
        text.reduce(0) { $0 + columns($1) }
    }

    /// The beginning of it, with an ellipsis where something was cut off.
    static func cut(_ text: String, to columns: Int) -> String {
        guard Self.columns(text) > columns else { return text }
        var (kept, used) = ("", 0)
        for character in text {
            let width = Self.columns(character)
            if used + width > columns - 1 { break }
            kept.append(character)
            used += width
        }
        return columns > 0 ? kept + "…" : ""
    }

    /// Lines of at most `columns`; a word that is longer is broken.
    static func wrapped(_ text: String, to columns: Int) -> [String] {
        var (lines, line, used) = ([String](), "", 0)
        for word in text.split(separator: " ") {
            let width = Self.columns(String(word))
            if used > 0, used + 1 + width > columns {
                lines.append(line)
                (line, used) = ("", 0)
            }
            if used > 0 {
                line += " "
                used += 1
            }
            for character in word {
                let width = Self.columns(character)
                if used > 0, used + width > columns {
                    lines.append(line)
                    (line, used) = ("", 0)
                }
                line.append(character)
                used += width
            }
        }
        return used > 0 ? lines + [line] : lines
    }

    private static func columns(_ character: Character) -> Int {
        var widest = 0
        for scalar in character.unicodeScalars { widest = max(widest, columns(scalar)) }
        return widest
    }

    private static func columns(_ scalar: Unicode.Scalar) -> Int {
        if scalar.value < 0x300 { return 1 }
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format: return 0
        default: break
        }
        switch scalar.value {
        case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F,
            0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x20000...0x3FFFD:
            return 2
        default: return scalar.properties.isEmojiPresentation ? 2 : 1
        }
    }
}

/// An argument as a shell would have to be given it.
enum ShellWord {
    static func quoted(_ word: String) -> String {
        let isPlain = word.utf8.allSatisfy { byte in
            (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                || "-_./:=,@%+".utf8.contains(byte)
        }
        if isPlain, !word.isEmpty { return word }
        return "'" + word.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
    }
}
