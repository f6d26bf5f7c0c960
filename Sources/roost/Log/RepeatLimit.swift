import Logging

/// Lines of one kind, which is one statement of the program: so many in a second are told, the rest is counted and told
/// as one line. A log that grows with whatever goes wrong a thousand times a second helps nobody.
struct RepeatLimit {
    struct Kind: Hashable {
        let file: String
        let line: UInt
    }

    /// What was left out.
    struct Rest {
        let level: Logger.Level
        /// Of the first that was left out.
        let message: String
        let count: Int
    }

    enum Verdict {
        case told, firstUntold, untold
    }

    private struct Second {
        var began: Int64
        var told = 0
        var untold = 0
        var level = Logger.Level.info
        var message = ""
    }

    /// Lines in a second.
    private static let most = 50
    /// Milliseconds.
    static let span = 1000

    private var seconds: [Kind: Second] = [:]

    /// - Parameters:
    ///   - now: milliseconds since 1970.
    ///   - message: asked for where it is kept.
    mutating func judge(_ kind: Kind, _ level: Logger.Level, at now: Int64, _ message: () -> String) -> Verdict {
        var second = seconds[kind] ?? Second(began: now)
        // What is untold stays until its own timer has told it. A clock that was set back begins anew.
        if second.untold == 0, Self.isOver(second, at: now) || now < second.began { second = Second(began: now) }
        defer { seconds[kind] = second }
        guard second.told >= Self.most else {
            second.told += 1
            return .told
        }
        second.untold += 1
        guard second.untold == 1 else { return .untold }
        second.level = level
        second.message = message()
        return .firstUntold
    }

    /// What was left out in seconds that are over by `now`.
    mutating func takeRest(at now: Int64) -> [Rest] {
        var rest: [Rest] = []
        for (kind, second) in seconds where second.untold > 0 && Self.isOver(second, at: now) {
            rest.append(Rest(level: second.level, message: second.message, count: second.untold))
            seconds[kind] = nil
        }
        return rest
    }

    private static func isOver(_ second: Second, at now: Int64) -> Bool { now - second.began >= Int64(span) }
}
