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
