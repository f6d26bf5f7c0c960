import Logging

/// Limits log lines per kind, a kind being one statement of the program: up to 50 a second are logged, the others are
/// counted and logged as one line. A log that grows with every failure that repeats a thousand times a second is
/// useless.
struct RepeatLimit {
    struct Kind: Hashable {
        let file: String
        let line: UInt
    }

    /// The suppressed lines of one kind in one second.
    struct Rest {
        let level: Logger.Level
        /// The message of the first suppressed line.
        let message: String
        let count: Int
    }

    enum Verdict {
        case logged, firstSuppressed, suppressed
    }

    private struct Second {
        var began: Int64
        var logged = 0
        var suppressed = 0
        var level = Logger.Level.info
        var message = ""
    }

    /// The most lines of a kind that are logged per second.
    private static let most = 50
    /// The length of a second in milliseconds.
    static let span = 1000

    private var seconds: [Kind: Second] = [:]

    /// - Parameters:
    ///   - now: milliseconds since 1970.
    ///   - message: called only if the message is retained.
    mutating func admitLine(_ kind: Kind, _ level: Logger.Level, at now: Int64, _ message: () -> String) -> Verdict {
        var second = seconds[kind] ?? Second(began: now)
        // A second with suppressed lines stays until its own timer has logged their number. If the clock was set back,
        // a new one starts.
        if second.suppressed == 0, Self.isOver(second, at: now) || now < second.began { second = Second(began: now) }
        defer { seconds[kind] = second }
        guard second.logged >= Self.most else {
            second.logged += 1
            return .logged
        }
        second.suppressed += 1
        guard second.suppressed == 1 else { return .suppressed }
        second.level = level
        second.message = message()
        return .firstSuppressed
    }

    /// The suppressed lines of all seconds that are over by `now`.
    mutating func takeRest(at now: Int64) -> [Rest] {
        var rest: [Rest] = []
        for (kind, second) in seconds where second.suppressed > 0 && Self.isOver(second, at: now) {
            rest.append(Rest(level: second.level, message: second.message, count: second.suppressed))
            seconds[kind] = nil
        }
        return rest
    }

    private static func isOver(_ second: Second, at now: Int64) -> Bool { now - second.began >= Int64(span) }
}
