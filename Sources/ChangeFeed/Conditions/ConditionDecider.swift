import Dispatch
import Glibc
import Hub
import Logging
import Matching
import Postgres
import Synchronization

/// Has Postgres decide filters beside the feed, on a thread and a session of their own, so that nobody but those whose filters
/// they are waits for it.
///
/// It works half of the time at most: after each answer it rests for as long as that took, so that filters leave the other
/// half of one core to everything else. From any thread, one question at a time.
final class ConditionDecider: Sendable {
    /// One question, and where its answers will be.
    final class Job: Sendable {
        private let answers = Mutex<ConditionEvaluator.Answers?>(nil)
        private let done = DispatchSemaphore(value: 0)
        private let isGivenUp = Mutex(false)

        /// Nil while they are being found.
        var result: ConditionEvaluator.Answers? { answers.withLock { $0 } }

        fileprivate func finish(_ found: ConditionEvaluator.Answers) { answers.withLock { $0 = found } }

        /// Nobody waits for it any more, so it is not asked again.
        func abandon() { isGivenUp.withLock { $0 = true } }

        fileprivate var isAbandoned: Bool { isGivenUp.withLock { $0 } }

        /// Nothing more is done for it.
        fileprivate func end() { done.signal() }

        /// - Throws: `PostgresError` of kind `timeout` where it takes longer.
        func wait(for limit: Duration) throws {
            guard isDone(within: limit) else {
                throw PostgresError(.timeout, "Postgres did not decide filters in time.")
            }
        }

        /// Waits for it, for so long.
        func isDone(within limit: Duration) -> Bool {
            if result == nil { _ = done.wait(timeout: .now() + .milliseconds(Int(limit.milliseconds))) }
            return result != nil
        }
    }

    private let queue = DispatchQueue(label: "roost-filters")
    private let asker: Mutex<ConditionEvaluator>
    private let isStopping = Mutex(false)
    private let logger: Logger
    private static let pause = Duration.milliseconds(500)
    private static let longestRest = Duration.milliseconds(250)

    init(conninfo: String, limits: ConditionLimits, budget: SharedConditionBudget, logger: Logger) {
        self.logger = logger
        asker = Mutex(ConditionEvaluator(conninfo: conninfo, limits: limits, budget: budget, logger: logger))
    }

    /// Begins to decide what changes wait for; while Postgres does not answer, it is asked again.
    ///
    /// - Parameters:
    ///   - rows: how many changes wait.
    ///   - conditions: what they wait for; called on a thread of this decider's.
    ///   - isOverdue: filters are more than Postgres can decide, so that the costliest have to end.
    ///   - whenDone: called on a thread of this decider's.
    func decide(
        of rows: Int, _ conditions: @escaping @Sendable () -> [PostgresCondition], isOverdue: Bool,
        whenDone: @escaping @Sendable () -> Void
    ) -> Job {
        let job = Job()
        queue.async { [self] in
            let began = ContinuousClock.now
            let conditions = conditions()
            while !isStopping.withLock({ $0 }), !job.isAbandoned {
                do {
                    job.finish(
                        try asker.withLock { try $0.answers(to: conditions, isOverdue: isOverdue, rows: rows) })
                    break
                } catch {
                    logger.debug("Filters are asked about again: \(error)")
                    Self.rest(Self.pause)
                }
            }
            job.end()
            whenDone()
            if !conditions.isEmpty { Self.rest(min(.now - began, Self.longestRest)) }
        }
        return job
    }

    /// Nothing is asked again from now on.
    func stop() { isStopping.withLock { $0 = true } }

    private static func rest(_ duration: Duration) {
        let (seconds, attoseconds) = duration.components
        var time = timespec(tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
        nanosleep(&time, nil)
    }
}

/// Why filters were given up.
package enum FilterEnd: String, Sendable, CaseIterable {
    /// It, or all of them together.
    case tookTooLong = "took_too_long"
    /// It was not its turn before the time of all was over.
    case notInTime = "not_in_time"
    /// The comparison failed.
    case failed
    /// There were more than Postgres may have to decide for a row, or than it could keep up with.
    case tooMany = "too_many"
}

/// What filters have cost, for all that ask about them. From any thread.
final class SharedConditionBudget: Sendable {
    private let content: Mutex<ConditionBudget>
    private let ended = Mutex<[FilterEnd: Int]>([:])

    /// How many filters were given up, by the reason.
    var ends: [FilterEnd: Int] { ended.withLock { $0 } }

    func count(_ end: FilterEnd, _ filters: Int = 1) { ended.withLock { $0[end, default: 0] += filters } }

    init(_ limits: ConditionLimits) { content = Mutex(ConditionBudget(limits, at: .now)) }

    func use<Result: Sendable>(_ body: (inout ConditionBudget) -> Result) -> Result { content.withLock { body(&$0) } }
}
