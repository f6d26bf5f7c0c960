import Dispatch
package import Logging
import Matching
package import Postgres
import Synchronization
import Workers

/// Evaluates policies on several sessions in parallel: the subjects of each question are divided among them, so that a row
/// which many users wait for occupies several of Postgres' cores instead of one.
///
/// The caller waits until all of them have answered, so later changes stay later for every user. Confined to one thread.
package struct PolicyPool: ~Copyable {
    /// With fewer subjects, asking is faster than handing over: waking a thread takes as long as some of them.
    package static let leastSubjects = 32

    private var own: PolicyEngine
    private let helpers: [PolicyHelper]

    /// - Parameter helpers: additional sessions; may be empty.
    package init(_ own: consuming PolicyEngine, helpers: [PolicyHelper]) {
        self.own = own
        self.helpers = helpers
    }

    /// See `PolicyEngine`.
    mutating func deletedTables(
        by transactions: [WriterTransaction], version: String
    ) throws(PostgresError) -> [WriterTransaction: Set<UInt32>] {
        try own.deletedTables(by: transactions, version: version)
    }

    /// See `PolicyEngine`.
    package mutating func answers(
        to questions: [PolicyQuestion], version: String
    ) throws(PostgresError) -> [PolicyAnswer] {
        let subjects = questions.reduce(0) { $0 + $1.subjects.count }
        let hands = min(helpers.count + 1, subjects / Self.leastSubjects)
        // Two sessions that put the same rows back would wait for each other.
        guard hands > 1, questions.allSatisfy({ $0.revival == nil }) else {
            return try own.answers(to: questions, version: version)
        }
        let parts = (0..<hands).map { hand in questions.map { $0.handPart(hand, of: hands) } }
        let jobs = zip(helpers, parts.dropFirst()).map { $0.startJob($1, version: version) }
        let first: Result<[PolicyAnswer], PostgresError>
        do throws(PostgresError) {
            first = .success(try own.answers(to: parts[0], version: version))
        } catch {
            first = .failure(error)
        }
        // Waits for all, even if one fails: the next questions must not meet a helper that is still busy.
        let results = [first] + jobs.map { $0.waitForResult() }
        var answers = questions.map { PolicyAnswer(hiding: $0) }
        for (hand, result) in results.enumerated() {
            for (index, answer) in try result.get().enumerated() {
                let subjects = Array(questions[index].bounds(of: hand, among: hands))
                answers[index].mergePart(answer, for: subjects, isFirst: hand == 0)
            }
        }
        return answers
    }
}

/// Evaluates policies on its own thread and session, for a `PolicyPool`. From any thread.
package final class PolicyHelper: Sendable {
    /// Questions and their future answers.
    final class Job: Sendable {
        fileprivate let questions: [PolicyQuestion]
        fileprivate let version: String
        private let result = Mutex<Result<[PolicyAnswer], PostgresError>?>(nil)
        private let done = DispatchSemaphore(value: 0)

        fileprivate init(_ questions: [PolicyQuestion], version: String) {
            self.questions = questions
            self.version = version
        }

        /// Waits as long as an engine takes, which has its own limits. Call it once.
        func waitForResult() -> Result<[PolicyAnswer], PostgresError> {
            done.wait()
            return result.withLock { $0 } ?? .failure(PostgresError(.connection, "Policies were not asked."))
        }

        fileprivate func storeResult(_ found: Result<[PolicyAnswer], PostgresError>) {
            result.withLock { $0 = found }
            done.signal()
        }
    }

    private struct Mail {
        var jobs: [Job] = []
        var isStopping = false
    }

    private let thread = WorkerThread(named: "roost-policies")
    private let mailbox = WorkerMailbox(Mail())
    private let conninfo: String
    private let logger: Logger

    package init(conninfo: String, logger: Logger) {
        self.conninfo = conninfo
        self.logger = logger
    }

    func startJob(_ questions: [PolicyQuestion], version: String) -> Job {
        let job = Job(questions, version: version)
        mailbox.post { $0.jobs.append(job) }
        // Started by the first question that is large enough, because most hubs have none.
        if !thread.wasStarted { thread.start { [self] in runUntilStopped() } }
        return job
    }

    /// Ends the thread and its session. Call it once no more questions are asked.
    package func stop() { mailbox.post { $0.isStopping = true } }

    private func runUntilStopped() {
        var engine = PolicyEngine(conninfo: conninfo, logger: logger)
        while true {
            mailbox.wait(until: nil)
            let mail = mailbox.takeMail { mail in
                defer { mail.jobs = [] }
                return mail
            }
            for job in mail.jobs {
                do throws(PostgresError) {
                    job.storeResult(.success(try engine.answers(to: job.questions, version: job.version)))
                } catch {
                    job.storeResult(.failure(error))
                }
            }
            if mail.isStopping { return }
        }
    }
}

extension PolicyQuestion {
    /// The subjects that one of several sessions gets.
    fileprivate func bounds(of hand: Int, among hands: Int) -> Range<Int> {
        subjects.count * hand / hands..<subjects.count * (hand + 1) / hands
    }

    fileprivate func handPart(_ hand: Int, of hands: Int) -> PolicyQuestion {
        selectSubjects(Array(bounds(of: hand, among: hands)))
    }

    /// The same question for some of the subjects.
    func selectSubjects(_ places: [Int]) -> PolicyQuestion {
        PolicyQuestion(
            table: table, command: command, role: role, rows: rows, subjects: places.map { subjects[$0] },
            wantsTablesRead: wantsTablesRead, userKey: userKey, revival: revival)
    }
}

extension PolicyAnswer {
    /// Adds the answer to a part. A property of the whole question has to hold for each of its parts.
    ///
    /// - Parameter subjects: the subjects of the part.
    mutating func mergePart(_ part: PolicyAnswer, for subjects: [Int], isFirst: Bool) {
        for (place, subject) in subjects.enumerated() {
            visible[subject] = part.visible[place]
            keys[subject] = part.keys[place]
        }
        failed.formUnion(part.failed.map { subjects[$0] })
        undecided.formUnion(part.undecided.map { subjects[$0] })
        for (place, failure) in part.failures { failures[subjects[place]] = failure }
        locked.formUnion(part.locked.map { subjects[$0] })
        lockedAlone.formUnion(part.lockedAlone.map { subjects[$0] })
        ending.formUnion(part.ending.map { subjects[$0] })
        problems += part.problems.filter { !problems.contains($0) }
        isUnrestricted = (isFirst || isUnrestricted) && part.isUnrestricted
        isDenied = isDenied || part.isDenied
        isRevivalLocked = isRevivalLocked || part.isRevivalLocked
        tablesRead = isFirst ? part.tablesRead : tablesRead.flatMap { known in part.tablesRead.map(known.union) }
        columnsRead = isFirst ? part.columnsRead : columnsRead.flatMap { known in part.columnsRead.map(known.union) }
    }
}
