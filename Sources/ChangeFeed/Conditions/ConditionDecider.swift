import Dispatch
import Hub
import Logging
import Matching
import Postgres
import Synchronization
import Workers

/// Has Postgres decide filters beside the feed, on a thread and a session of their own, so that nobody but those whose filters
/// they are waits for it.
///
/// It works half of the time at most: after each answer it rests for as long as that took, so that filters leave the other
/// half of one core to everything else. From any thread, one question at a time.
final class ConditionDecider: Sendable {
    /// One question, and where its answers will be.
    final class Job: Sendable {
        fileprivate let rows: Int
        fileprivate let conditions: @Sendable () -> [PostgresCondition]
        fileprivate let isOverdue: Bool
        fileprivate let whenDone: @Sendable () -> Void
        private let answers = Mutex<ConditionEvaluator.Answers?>(nil)
        private let done = DispatchSemaphore(value: 0)
        private let isGivenUp = Mutex(false)

        fileprivate init(
            _ rows: Int, _ conditions: @escaping @Sendable () -> [PostgresCondition], isOverdue: Bool,
            whenDone: @escaping @Sendable () -> Void
        ) {
            self.rows = rows
            self.conditions = conditions
            self.isOverdue = isOverdue
            self.whenDone = whenDone
        }

        /// Nil while they are being found.
        var result: ConditionEvaluator.Answers? { answers.withLock { $0 } }

        fileprivate func finish(_ found: ConditionEvaluator.Answers) { answers.withLock { $0 = found } }

        /// Nobody waits for it any more, so it is not asked again.
        func abandon() { isGivenUp.withLock { $0 = true } }

        fileprivate var isAbandoned: Bool { isGivenUp.withLock { $0 } }

        /// Nothing more is done for it.
        fileprivate func end() {
            done.signal()
            whenDone()
        }

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

    private struct Mail {
        var jobs: [Job] = []
        var isStopping = false
    }

    private let thread = WorkerThread(named: "roost-filters")
    private let mailbox = WorkerMailbox(Mail())
    /// Readable once nothing is to be asked any more.
    private let stopped = EventDescriptor()
    private let conninfo: String
    private let limits: ConditionLimits
    private let budget: SharedConditionBudget
    private let logger: Logger
    private static let pause = Duration.milliseconds(500)
    private static let longestRest = Duration.milliseconds(250)

    init(conninfo: String, limits: ConditionLimits, budget: SharedConditionBudget, logger: Logger) {
        self.conninfo = conninfo
        self.limits = limits
        self.budget = budget
        self.logger = logger
    }

    /// Begins to decide what changes wait for; while Postgres does not answer, it is asked again.
    ///
    /// - Parameters:
    ///   - rows: how many changes wait.
    ///   - conditions: what they wait for; called on this decider's thread.
    ///   - isOverdue: filters are more than Postgres can decide, so that the costliest have to end.
    ///   - whenDone: called on this decider's thread.
    func decide(
        of rows: Int, _ conditions: @escaping @Sendable () -> [PostgresCondition], isOverdue: Bool,
        whenDone: @escaping @Sendable () -> Void
    ) -> Job {
        let job = Job(rows, conditions, isOverdue: isOverdue, whenDone: whenDone)
        mailbox.post { $0.jobs.append(job) }
        // With the first question: most hubs have no such filter.
        if !thread.wasStarted { thread.start { [self] in run() } }
        return job
    }

    /// Nothing is asked again from now on.
    func stop() {
        mailbox.post { $0.isStopping = true }
        stopped.signal()
    }

    /// Ends the thread, after `stop`. One that hangs in a filter or in the network is left behind: it ends by itself.
    func join(within patience: Duration) { thread.join(by: .now + patience) }

    private func run() {
        var evaluator = ConditionEvaluator(conninfo: conninfo, limits: limits, budget: budget, logger: logger)
        while true {
            mailbox.wait(until: nil)
            let mail = mailbox.take { mail in
                defer { mail.jobs = [] }
                return mail
            }
            for job in mail.jobs { decide(job, &evaluator) }
            if mail.isStopping { return }
        }
    }

    private func decide(_ job: Job, _ evaluator: inout ConditionEvaluator) {
        let began = ContinuousClock.now
        let conditions = job.conditions()
        while !isStopping, !job.isAbandoned {
            do {
                job.finish(try evaluator.answers(to: conditions, isOverdue: job.isOverdue, rows: job.rows))
                break
            } catch {
                logger.debug("Filters are asked about again: \(error)")
                rest(Self.pause)
            }
        }
        job.end()
        if !conditions.isEmpty { rest(min(.now - began, Self.longestRest)) }
    }

    private var isStopping: Bool { mailbox.look { $0.isStopping } }

    private func rest(_ duration: Duration) { _ = stopped.wait(until: .now + duration) }
}
