import Administration
import Glibc

/// Lines that scripts wait for: written at once, also into a pipe, where `print` would keep them in a buffer.
enum StandardOutput {
    static func line(_ text: String) {
        var text = text + "\n"
        text.withUTF8 { _ = Glibc.write(STDOUT_FILENO, $0.baseAddress, $0.count) }
    }

    private static let isTerminal = isatty(STDOUT_FILENO) == 1

    /// Writes all of it, however long the reader takes: to the byte, but for what a terminal would obey.
    ///
    /// - Returns: false where nobody reads any more.
    @discardableResult static func write(_ bytes: [UInt8]) -> Bool {
        var rest = (isTerminal ? Self.harmless(bytes) : bytes)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(STDOUT_FILENO, $0.baseAddress, $0.count) }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }
}

extension StandardOutput {
    /// The same without control characters but line feeds and tabs: whoever writes a stream must not move the cursor, change the title
    /// or answer in the name of whoever reads it (ECMA-48). They are shown as question marks.
    static func harmless(_ bytes: [UInt8]) -> [UInt8] {
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

/// Where everything goes that is not a command's output.
enum StandardError {
    /// Writes at once. A standard error that takes nothing more leaves nobody to tell, so the outcome is not looked at.
    static func write(_ text: String) {
        var text = text
        text.withUTF8 { _ = Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }
}

/// Shows how far a command has come, on standard error: on a terminal in one line that is written anew, elsewhere in a
/// line every few seconds. What takes less than a second is not shown.
final class ProgressLine {
    private let isTerminal = isatty(STDERR_FILENO) == 1
    private let began = ContinuousClock.now
    private var sayAt = ContinuousClock.now + ProgressLine.moment
    private var isShown = false

    private static let moment = Duration.seconds(1)
    private static let interval = Duration.seconds(5)
    /// ECMA-48: the line's start, erased to its end, and not wrapped where it is too long for the terminal.
    private static let anew = "\r\u{1B}[K"
    private static let unwrapped = "\u{1B}[?7l"
    private static let wrapped = "\u{1B}[?7h"

    func show(_ progress: AdminProgress) {
        let now = ContinuousClock.now
        guard now >= sayAt else { return }
        let text = text(of: progress, after: now - began)
        if isTerminal {
            StandardError.write(Self.anew + Self.unwrapped + text + Self.wrapped)
            isShown = true
        } else {
            StandardError.write(text + "\n")
            sayAt = now + Self.interval
        }
    }

    /// Runs `body` and takes the line away after it, whatever becomes of it.
    func during<Outcome>(_ body: () throws -> Outcome) rethrows -> Outcome {
        defer { if isShown { StandardError.write(Self.anew) } }
        return try body()
    }

    private func text(of progress: AdminProgress, after time: Duration) -> String {
        let steps = progress.total > 1 ? ", \(progress.done) of \(progress.total) done" : ""
        let detail = progress.detail.map { "; \($0)" } ?? ""
        return "\(progress.task)\(steps), \(time.components.seconds) s\(detail)"
    }
}
