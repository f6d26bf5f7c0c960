import Administration
import Glibc

/// Lines that scripts wait for: written at once, also into a pipe, where `print` would keep them in a buffer.
enum StandardOutput {
    static func line(_ text: String) {
        var text = text + "\n"
        text.withUTF8 { _ = Glibc.write(STDOUT_FILENO, $0.baseAddress, $0.count) }
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
