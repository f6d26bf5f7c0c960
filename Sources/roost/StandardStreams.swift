import Administration
import Glibc

/// Lines that scripts wait for: written at once, also into a pipe, whereas `print` would buffer them.
enum StandardOutput {
    static func writeLine(_ text: String) {
        var text = text + "\n"
        text.withUTF8 { _ = Glibc.write(STDOUT_FILENO, $0.baseAddress, $0.count) }
    }

    private static let isTerminal = isatty(STDOUT_FILENO) == 1

    /// Writes all bytes, however slow the output is; on a terminal, control characters are replaced.
    ///
    /// - Returns: false if the output is closed.
    @discardableResult static func write(_ bytes: [UInt8]) -> Bool {
        var rest = (isTerminal ? Self.withoutControls(bytes) : bytes)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(STDOUT_FILENO, $0.baseAddress, $0.count) }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }
}

extension StandardOutput {
    /// Replaces control characters except line feeds and tabs by question marks: the writer of a stream must not be
    /// able to move the cursor, change the title or send replies from the reader's terminal (ECMA-48).
    static func withoutControls(_ bytes: [UInt8]) -> [UInt8] {
        var out = bytes
        for place in out.indices {
            let byte = out[place]
            // C1 controls are two bytes in UTF-8, C2 80 to C2 9F.
            let isC1 = (0x80...0x9F).contains(byte) && place > 0 && bytes[place - 1] == 0xC2
            if isC1 { out[place - 1] = UInt8(ascii: "?") }
            if isC1 || byte == 0x7F || byte < 0x20 && byte != 0x0A && byte != 0x09 { out[place] = UInt8(ascii: "?") }
        }
        return out
    }
}

/// The destination of everything that is not a command's output.
enum StandardError {
    /// Writes at once. The result is ignored: if standard error fails, there is no place to report it.
    static func write(_ text: String) {
        var text = text
        text.withUTF8 { _ = Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }
}

/// Shows a command's progress on standard error: on a terminal as one line that is rewritten, otherwise as a line every
/// few seconds. Commands that take less than a second show nothing.
final class ProgressLine {
    private let isTerminal = isatty(STDERR_FILENO) == 1
    private let began = ContinuousClock.now
    private var sayAt = ContinuousClock.now + ProgressLine.moment
    private var isShown = false

    private static let moment = Duration.seconds(1)
    private static let interval = Duration.seconds(5)
    /// ECMA-48: returns to the start of the line and erases it; lines too long for the terminal are not wrapped.
    private static let anew = "\r\u{1B}[K"
    private static let unwrapped = "\u{1B}[?7l"
    private static let wrapped = "\u{1B}[?7h"

    func showProgress(_ progress: AdminProgress) {
        let now = ContinuousClock.now
        guard now >= sayAt else { return }
        let text = progressText(of: progress, after: now - began)
        if isTerminal {
            StandardError.write(Self.anew + Self.unwrapped + text + Self.wrapped)
            isShown = true
        } else {
            StandardError.write(text + "\n")
            sayAt = now + Self.interval
        }
    }

    /// Runs `body`, and erases the line afterwards in any case.
    func during<Outcome>(_ body: () throws -> Outcome) rethrows -> Outcome {
        defer { if isShown { StandardError.write(Self.anew) } }
        return try body()
    }

    private func progressText(of progress: AdminProgress, after time: Duration) -> String {
        let steps = progress.total > 1 ? ", \(progress.done) of \(progress.total) done" : ""
        let detail = progress.detail.map { "; \($0)" } ?? ""
        return "\(progress.task)\(steps), \(time.components.seconds) s\(detail)"
    }
}
