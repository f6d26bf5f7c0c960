import Glibc
import Hub
package import Logging
import Synchronization
import Wire

/// The last warnings of the log, and the level that counts, which can be changed while the hub runs.
package final class LogBook: Sendable {
    package struct Line: Sendable {
        /// From 1 on, without gaps.
        package let number: Int
        /// In seconds since 1970.
        package let at: Double
        package let level: String
        package let text: String
    }

    private struct State {
        var lines = Ring<Line>(capacity: 100)
        var count = 0
        var level: Logger.Level
    }

    private let state: Mutex<State>

    package init(level: Logger.Level) {
        state = Mutex(State(level: level))
    }

    package var level: Logger.Level {
        get { state.withLock { $0.level } }
        set { state.withLock { $0.level = newValue } }
    }

    /// A logger that writes where `handler` does, at this book's level, and whose warnings are noted here.
    package func logger(label: String, to handler: any LogHandler) -> Logger {
        Logger(label: label) { _ in BookHandler(book: self, target: handler) }
    }

    package func lines(after number: Int) -> [Line] {
        state.withLock { $0.lines.elements.filter { $0.number > number } }
    }

    func note(_ level: Logger.Level, _ text: String) {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        let at = Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
        let shown = Excerpt.redacted(text)
        state.withLock { state in
            state.count += 1
            state.lines.append(Line(number: state.count, at: at, level: level.rawValue, text: shown))
        }
    }
}
