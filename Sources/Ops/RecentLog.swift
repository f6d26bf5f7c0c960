import Glibc
import Hub
package import Logging
import Synchronization
import Wire

/// The last lines of the log, for the operator's page. Notices and warnings have a ring of their own, so that a flood
/// of lesser lines cannot push them out.
package final class RecentLog: Sendable {
    package struct Line: Sendable {
        /// The line's number, from 1; numbers of dropped lines are missing.
        package let number: Int
        /// The time of logging, in seconds since 1970.
        package let at: Double
        package let level: String
        package let text: String
    }

    private struct State {
        /// Lines of level notice and above.
        var notable = Ring<Line>(capacity: 100)
        /// All other lines that the log's level admits.
        var rest = Ring<Line>(capacity: 200)
        var count = 0
    }

    private let state = Mutex(State())

    package init() {}

    /// The retained lines with greater numbers, in order.
    package func lines(after number: Int) -> [Line] {
        let lines = state.withLock { $0.notable.elements + $0.rest.elements }
        return lines.filter { $0.number > number }.sorted { $0.number < $1.number }
    }

    /// Adds a line.
    package func addLine(_ level: Logger.Level, _ text: String) {
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
