import Glibc
import Hub
package import Logging
import Synchronization
import Wire

/// The last warnings of the log, for the operator's page.
package final class RecentLog: Sendable {
    package struct Line: Sendable {
        /// The line's number, from 1 on and without gaps.
        package let number: Int
        /// When it was logged, in seconds since 1970.
        package let at: Double
        package let level: String
        package let text: String
    }

    private struct State {
        var lines = Ring<Line>(capacity: 100)
        var count = 0
    }

    private let state = Mutex(State())

    package init() {}

    /// The lines that are kept, from the one behind that with this number on.
    package func lines(after number: Int) -> [Line] {
        state.withLock { $0.lines.elements.filter { $0.number > number } }
    }

    /// Notes what operators should see: from notices on.
    package func note(_ level: Logger.Level, _ text: String) {
        guard level >= .notice else { return }
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
