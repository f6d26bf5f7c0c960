import Logging

/// Lines of one kind, which is one statement of the program: so many in a second are logged, the rest is counted and
/// logged as one line. A log that grows with whatever goes wrong a thousand times a second helps nobody.
struct RepeatLimit {
    struct Kind: Hashable {
        let file: String
        let line: UInt
    }

    /// What was left out of one kind in one second.
    struct Rest {
        let level: Logger.Level
        /// The message of the first line that was left out.
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

    /// How many lines of a kind are logged in a second.
    private static let most = 50
    /// How long a second is, in milliseconds.
    static let span = 1000

    private var seconds: [Kind: Second] = [:]

    /// - Parameters:
    ///   - now: milliseconds since 1970.
    ///   - message: asked for where it is kept.
    mutating func judge(_ kind: Kind, _ level: Logger.Level, at now: Int64, _ message: () -> String) -> Verdict {
        var second = seconds[kind] ?? Second(began: now)
        // What is suppressed stays until its own timer has logged its number. A clock that was set back begins anew.
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

    /// What was left out in seconds that are over by `now`.
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
