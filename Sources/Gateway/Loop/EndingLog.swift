import Logging

/// Limits how many connection ends a loop logs one by one per second; the others share one line.
///
/// When a network or a deploy ends thousands of connections at once, neither the loop nor the log should be kept busy
/// with it.
struct EndingLog {
    /// Lines per second from this loop.
    private let most: Int
    private var told = 0
    private var untold = 0

    /// Lines per second from the whole hub.
    private static let mostOfAll = 50

    init(loops: Int) {
        most = max(1, Self.mostOfAll / max(1, loops))
    }

    /// Whether one more end gets a line of its own.
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
