import Logging

/// Says what keeps policies from being asked, each sentence once a minute however many rows it is true of.
struct RateLimitedLog: ~Copyable {
    private static let silence = Duration.seconds(60)
    private static let capacity = 100
    private let logger: Logger
    private var said: [String: ContinuousClock.Instant] = [:]

    init(logger: Logger) {
        self.logger = logger
    }

    mutating func note(_ sentence: String) {
        let now = ContinuousClock.now
        if let before = said[sentence], before + Self.silence > now { return }
        if said.count >= Self.capacity { said.removeAll() }
        said[sentence] = now
        logger.warning("\(sentence)")
    }
}
