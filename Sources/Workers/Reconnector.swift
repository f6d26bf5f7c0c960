package import Logging

/// The schedule of retries: after 1 s, doubling to 15 s, each wait a random part of that.
///
/// The longest wait is 15 times the first, so that a faster first retry also means faster later ones.
package struct RetrySchedule: Sendable {
    package typealias Instant = ContinuousClock.Instant

    private let first: Duration
    private let longest: Duration
    private var ceiling: Duration
    private var connectedAt: Instant?
    /// When the next attempt is due; nil if nothing has failed.
    package private(set) var retryAt: Instant?

    package init(first: Duration = .seconds(1)) {
        self.first = first
        ceiling = first
        longest = first * 15
    }

    package func isDue(at now: Instant) -> Bool { retryAt.map { $0 <= now } ?? true }

    /// A connection was made. It shortens the waits only once it has lasted for 10 s: one that breaks at once is no success.
    package mutating func connectionOpened(at now: Instant) {
        connectedAt = now
        retryAt = nil
    }

    /// The attempt succeeded; the waits start over with the next failure.
    package mutating func attemptSucceeded() { self = RetrySchedule(first: first) }

    /// Makes the next attempt due at once, however long the waits have become.
    package mutating func retryNow() { retryAt = nil }

    /// - Parameter random: in 0..<1. Full jitter, so that many hubs do not come back to a database at once.
    /// - Returns: how long to wait.
    @discardableResult
    package mutating func attemptFailed(at now: Instant, random: Double = .random(in: 0..<1)) -> Duration {
        if let connectedAt, now - connectedAt >= .seconds(10) { ceiling = first }
        connectedAt = nil
        defer { ceiling = min(ceiling * 2, longest) }
        let wait = ceiling * random
        retryAt = now + wait
        return wait
    }
}

/// Keeps a worker connected: decides when to try again, and logs once that the connection is lost and once that it is back.
package struct Reconnector: Sendable {
    private let logger: Logger
    private let lost: String
    private let regained: String
    private var schedule: RetrySchedule
    private var isAway = false

    /// - Parameters:
    ///   - lost: the text before the error, without a colon.
    ///   - regained: a sentence.
    package init(first: Duration = .seconds(1), logger: Logger, lost: String, regained: String) {
        self.logger = logger
        self.lost = lost
        self.regained = regained
        schedule = RetrySchedule(first: first)
    }

    /// Nil if no attempt has failed since the last connection.
    package var retryAt: ContinuousClock.Instant? { schedule.retryAt }

    package var isDue: Bool { schedule.isDue(at: .now) }

    package mutating func connectionOpened() {
        schedule.connectionOpened(at: .now)
        if isAway { logger.info("\(regained)") }
        isAway = false
    }

    /// The connection failed or was lost.
    ///
    /// - Parameter isStopping: suppresses the log line.
    package mutating func connectionFailed(_ error: any Error, isStopping: Bool = false) {
        schedule.attemptFailed(at: .now)
        if !isAway, !isStopping { logger.warning("\(lost): \(error)") }
        isAway = true
    }

    /// The connection is given up deliberately, which is no outage: the next attempt follows after the usual wait.
    package mutating func givenUp() { schedule.attemptFailed(at: .now) }

    package mutating func retryNow() { schedule.retryNow() }
}

/// Logs what prevents some work: each sentence at most once a minute, however many rows it concerns, or one sentence a
/// minute about each subject.
package struct RateLimitedLog: ~Copyable {
    private static let silence = Duration.seconds(60)
    private static let capacity = 100
    private let logger: Logger
    private var said: [String: ContinuousClock.Instant] = [:]

    package init(logger: Logger) {
        self.logger = logger
    }

    /// - Parameter subject: nil if the sentence itself is the subject.
    package mutating func logWarning(_ sentence: String, about subject: String? = nil) {
        let now = ContinuousClock.now
        if let before = said[subject ?? sentence], before + Self.silence > now { return }
        if said.count >= Self.capacity { said.removeAll() }
        said[subject ?? sentence] = now
        logger.warning("\(sentence)")
    }
}
