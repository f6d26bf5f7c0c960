import Logging

/// How many connections' ends a loop tells of by themselves; the rest of a second's are one line together.
///
/// When a network or a deploy ends thousands at once, neither the loop nor the log is to be kept busy with it.
struct EndingLog {
    /// Lines in a second, of this loop.
    private let most: Int
    private var told = 0
    private var untold = 0

    /// Lines in a second, of the whole hub.
    private static let mostOfAll = 50

    init(loops: Int) {
        most = max(1, Self.mostOfAll / max(1, loops))
    }

    /// Whether there is a line for one more.
    mutating func mayTell() -> Bool {
        guard told < most else {
            untold += 1
            return false
        }
        told += 1
        return true
    }

    mutating func secondGoesBy(loop: Int, _ logger: Logger) {
        told = 0
        guard untold > 0 else { return }
        logger.info("and \(untold) more connections ended", metadata: ["loop": .stringConvertible(loop)])
        untold = 0
    }
}
