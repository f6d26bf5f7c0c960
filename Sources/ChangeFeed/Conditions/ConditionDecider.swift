import Dispatch
import Hub
import Logging
import Matching
import Postgres
import Synchronization
import Workers

/// Has Postgres decide filters beside the feed, on a thread and a session of its own, so that only the filters' own
/// subscriptions wait for it.
///
/// It works half of the time at most: after each answer it pauses for as long as the answer took, which leaves half of one
/// core to everything else. From any thread, one question at a time.
final class ConditionDecider: Sendable {
    /// One question and its future answers.
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

        /// Nil while the answers are being found.
        var result: ConditionEvaluator.Answers? { answers.withLock { $0 } }

        fileprivate func storeAnswers(_ found: ConditionEvaluator.Answers) { answers.withLock { $0 = found } }

        /// Stops asking: no caller waits for the answers any more.
        func abandonJob() { isGivenUp.withLock { $0 = true } }

        fileprivate var isAbandoned: Bool { isGivenUp.withLock { $0 } }

        /// Signals that no more work is done for this job.
        fileprivate func signalEnd() {
            done.signal()
            whenDone()
        }

        /// - Throws: `PostgresError` of kind `timeout` if it takes longer.
        func wait(for limit: Duration) throws {
            guard isDone(within: limit) else {
                throw PostgresError(.timeout, "Postgres did not decide filters in time.")
            }
        }

        /// Waits for the answers for at most `limit`.
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
    /// Readable once no more questions may be asked.
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

    /// Begins to decide the filters that changes wait for; as long as Postgres does not answer, the question is repeated.
    ///
    /// - Parameters:
    ///   - rows: number of waiting changes.
    ///   - conditions: the conditions they wait for; called on this decider's thread.
    ///   - isOverdue: true if filters are more than Postgres can decide, so that the costliest have to end.
    ///   - whenDone: called on this decider's thread.
    func startJob(
        of rows: Int, _ conditions: @escaping @Sendable () -> [PostgresCondition], isOverdue: Bool,
        whenDone: @escaping @Sendable () -> Void
    ) -> Job {
        let job = Job(rows, conditions, isOverdue: isOverdue, whenDone: whenDone)
        mailbox.post { $0.jobs.append(job) }
        // Started by the first question, because most hubs have no such filter.
        if !thread.wasStarted { thread.start { [self] in runUntilStopped() } }
        return job
    }

    /// Stops further questions.
    func stop() {
        mailbox.post { $0.isStopping = true }
        stopped.signal()
    }

    /// Ends the thread, after `stop`. A thread that hangs in a filter or in the network is left behind: it ends by itself.
    func join(within patience: Duration) { thread.join(by: .now + patience) }

    private func runUntilStopped() {
        var evaluator = ConditionEvaluator(conninfo: conninfo, limits: limits, budget: budget, logger: logger)
        while true {
            mailbox.wait(until: nil)
            let mail = mailbox.takeMail { mail in
                defer { mail.jobs = [] }
                return mail
            }
            for job in mail.jobs { decideJob(job, &evaluator) }
            if mail.isStopping { return }
        }
    }

    private func decideJob(_ job: Job, _ evaluator: inout ConditionEvaluator) {
        let began = ContinuousClock.now
        let conditions = job.conditions()
        while !isStopping, !job.isAbandoned {
            do {
                job.storeAnswers(try evaluator.answers(to: conditions, isOverdue: job.isOverdue, rows: job.rows))
                break
            } catch {
                logger.debug("Filters are asked about again: \(error)")
                sleepUnlessStopped(Self.pause)
            }
        }
        job.signalEnd()
        if !conditions.isEmpty { sleepUnlessStopped(min(.now - began, Self.longestRest)) }
    }

    private var isStopping: Bool { mailbox.withContent { $0.isStopping } }

    private func sleepUnlessStopped(_ duration: Duration) { _ = stopped.wait(until: .now + duration) }
}
