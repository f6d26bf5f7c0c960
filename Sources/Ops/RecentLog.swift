import Glibc
import Hub
package import Logging
import Synchronization
import Wire

/// The last lines of the log, for the operator's page: more notices and warnings than a flood of lesser lines can push out.
package final class RecentLog: Sendable {
    package struct Line: Sendable {
        /// The line's number, from 1 on; of lines that are not kept the numbers are missing.
        package let number: Int
        /// When it was logged, in seconds since 1970.
        package let at: Double
        package let level: String
        package let text: String
    }

    private struct State {
        /// From notices on.
        var notable = Ring<Line>(capacity: 100)
        /// Whatever else the log's level lets through.
        var rest = Ring<Line>(capacity: 200)
        var count = 0
    }

    private let state = Mutex(State())

    package init() {}

    /// The lines that are kept, from the one behind that with this number on, in their order.
    package func lines(after number: Int) -> [Line] {
        let lines = state.withLock { $0.notable.elements + $0.rest.elements }
        return lines.filter { $0.number > number }.sorted { $0.number < $1.number }
    }

    /// Notes a line that is logged.
    package func note(_ level: Logger.Level, _ text: String) {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        let at = Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
        let shown = Excerpt.redacted(text)
        state.withLock { state in
            state.count += 1
            let line = Line(number: state.count, at: at, level: level.rawValue, text: shown)
            if level >= .notice { state.notable.append(line) } else { state.rest.append(line) }
        }
    }
}
