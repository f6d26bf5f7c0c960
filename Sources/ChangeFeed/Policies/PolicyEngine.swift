import Hub
package import Logging
package import Postgres

/// Decides which rows a user may see or write, as Postgres' row level security would.
///
/// It evaluates the table's own policies on the row as the change has it, under the user's role and with the settings that
/// PostgREST derives from a token. The row itself is not looked up: it may have changed again, and a hidden version must
/// not be shown because a later one is visible.
///
/// - Whatever cannot be decided is hidden, but only from the users for whom it cannot be decided.
/// - A policy that reads system columns (`ctid`, `tableoid`) cannot be evaluated, and hides everything.
/// - Confined to one thread, on which it waits. It owns its connection: opened for the first question, and again after a
///   loss.
package struct PolicyEngine: ~Copyable {
    private let conninfo: String
    private let logger: Logger
    private let limits: PolicyLimits
    private var session: PolicySession?
    private var version: String?
    private var trials = PolicyTrials()

    package init(conninfo: String, logger: Logger) {
        self.init(conninfo: conninfo, logger: logger, limits: PolicyLimits())
    }

    /// - Parameter limits: time limits of policies.
    package init(conninfo: String, logger: Logger, limits: PolicyLimits) {
        self.conninfo = conninfo
        self.logger = logger
        self.limits = limits
    }

    /// Answers each question, all in one round trip if nothing has to be looked up in the catalog.
    ///
    /// A session lost since the last questions is replaced at once: the caller may be the feed, which would take the loss
    /// for its own and reconnect. Users whose policies end the session are shown no rows, and the others are answered
    /// (`PolicyTrials`). The same goes for users for whom a policy waits for a lock.
    ///
    /// - Parameter version: differs whenever a table, a policy, a role or a privilege does; results of catalog look-ups
    ///   under another version are dropped. Between a change and the new version, the old policies answer.
    /// - Throws: `PostgresError` of kind `connection` or `timeout` if nothing was decided because the database is away. Ask
    ///   again then.
    package mutating func answers(
        to questions: [PolicyQuestion], version: String
    ) throws(PostgresError) -> [PolicyAnswer] {
        trials.forgetOld(at: .now)
        while !trials.isApart(questions) {
            if let answers = try tryQuestions(questions, version) {
                trials.recordAnswered()
                return answers
            }
            trials.lostTogether()
        }
        let answers = try answersApart(to: questions, version)
        trials.recordAnswered()
        return answers
    }

    /// - Returns: nil if the questions ended the session.
    private mutating func tryQuestions(
        _ questions: [PolicyQuestion], _ version: String
    ) throws(PostgresError) -> [PolicyAnswer]? {
        var answers = questions.map { PolicyAnswer(hiding: $0) }
        var asked: [AskedPart] = []
        var doubtful: [AskedPart] = []
        let now = ContinuousClock.now
        for (place, question) in questions.enumerated() {
            let barred = trials.barred(of: question)
            for subject in barred { answers[place].endsSession(subject) }
            let open = question.subjects.indices.filter { !barred.contains($0) }
            // A question without subjects is asked too: that its role may see nothing at all is also an answer.
            guard !open.isEmpty || barred.isEmpty else { continue }
            guard !trials.isResting(question, at: now) else {
                answers[place].waitsForLock(open)
                continue
            }
            let locked = trials.locked(of: question, at: now)
            let free = open.filter { locked[$0] == nil }
            answers[place].waitsForLock(open.filter { locked[$0] == false })
            if !free.isEmpty || locked.isEmpty {
                let isLocked = trials.isLocked(question)
                let part = free.count == question.subjects.count ? question : question.selectSubjects(free)
                let whole = AskedPart(place: place, question: part, subjects: free, isDoubtful: isLocked)
                if isLocked { doubtful.append(whole) } else { asked.append(whole) }
            }
            for subject in open where locked[subject] == true {
                doubtful.append(
                    AskedPart(
                        place: place, question: question.selectSubjects([subject]), subjects: [subject],
                        isDoubtful: true))
            }
        }
        asked += doubtful
        guard let found = try askParts(asked, version) else { return nil }
        var isFirst = Set(questions.indices)
        for (part, found) in zip(asked, found) {
            answers[part.place].mergePart(found, for: part.subjects, isFirst: isFirst.remove(part.place) != nil)
            trials.recordAsked(part.question, locked: found.locked, alone: found.lockedAlone, at: .now)
        }
        for place in answers.indices where !answers[place].locked.isEmpty {
            let problem = PolicyProblem(question: questions[place])
            answers[place].problems.append(problem.locked(subjects: answers[place].locked.count))
        }
        return answers
    }

    private mutating func askParts(_ parts: [AskedPart], _ version: String) throws(PostgresError) -> [PolicyAnswer]? {
        guard !parts.isEmpty else { return [] }
        do {
            let session = try openSession(version)
            do {
                return try session.answers(to: parts)
            } catch let error as PostgresError where error.kind == .timeout && session.isBroken && parts.count > 1 {
                let fresh = try openSession(version)
                return try parts.flatMap { try fresh.answers(to: [$0]) }
            }
        } catch let error as PostgresError {
            // A session that hangs in spite of Postgres' own limits is lost, too.
            let isLost = session?.isBroken == true
            // An unexpected refusal leaves a session in an unknown state, and would recur.
            let isRefused = error.kind == .server && session != nil
            if error.kind != .timeout || isLost { session = nil }
            if isLost || isRefused { return nil }
            throw error.kind == .server
                ? PostgresError(.connection, sqlState: error.sqlState, error.message) : error
        } catch {
            session = nil
            throw PostgresError(.connection, "\(error)")
        }
    }

    /// Asks one question after the other, and asks one that ends the session for one subject after the other.
    private mutating func answersApart(
        to questions: [PolicyQuestion], _ version: String
    ) throws(PostgresError) -> [PolicyAnswer] {
        var answers = questions.map { PolicyAnswer(hiding: $0) }
        let deadline = ContinuousClock.now + limits.subjects
        for (place, question) in questions.enumerated() {
            if !trials.isSuspect(question), let found = try tryQuestions([question], version) {
                answers[place] = found[0]
                continue
            }
            // Marked before they are asked: if the server is gone after one, the others are not asked together again.
            trials.suspectQuestion(question, at: .now)
            for subject in question.subjects.indices {
                guard ContinuousClock.now < deadline else {
                    answers[place].failed.insert(subject)
                    answers[place].undecided.insert(subject)
                    continue
                }
                let alone = question.selectSubjects([subject])
                while true {
                    if let found = try tryQuestions([alone], version) {
                        answers[place].mergePart(found[0], for: [subject], isFirst: subject == 0)
                        break
                    }
                    guard trials.strikeSubject(subject, of: question, at: .now) else { continue }
                    answers[place].endsSession(subject)
                    break
                }
            }
            trials.clearSuspect(question)
            let ending = answers[place].ending.count
            if ending > 0 {
                answers[place].problems.append(PolicyProblem(question: question).endedSession(subjects: ending))
            }
        }
        return answers
    }

    /// Reads something without policies; on another session if this one was lost.
    mutating func readCatalog<Answer>(
        _ version: String, _ read: (PolicySession) throws -> Answer
    ) throws(PostgresError) -> Answer {
        var mayTryAgain = session != nil
        while true {
            do {
                return try read(openSession(version))
            } catch let error as PostgresError {
                let isLost = session?.isBroken ?? true
                if isLost || error.kind != .timeout { session = nil }
                guard isLost, mayTryAgain, error.kind != .server else {
                    throw error.kind == .server
                        ? PostgresError(.connection, sqlState: error.sqlState, error.message) : error
                }
                mayTryAgain = false
            } catch {
                session = nil
                throw PostgresError(.connection, "\(error)")
            }
        }
    }

    /// Ends the session; the next question opens another.
    package mutating func closeSession() { session = nil }

    private mutating func openSession(_ version: String) throws -> PolicySession {
        if let session, !session.isBroken, self.version == version { return session }
        if let session, !session.isBroken {
            try session.dropPlans()
            self.version = version
            return session
        }
        let fresh = try PolicySession(conninfo: conninfo, logger: logger, limits: limits)
        session = fresh
        self.version = version
        return fresh
    }
}

/// A question, or part of its subjects, as it is asked.
struct AskedPart {
    /// Place of the question among those asked together.
    let place: Int
    let question: PolicyQuestion
    /// The part's subjects, as indices into the question's.
    let subjects: [Int]
    /// True if all of them waited for a lock the last time, so that they get little time.
    let isDoubtful: Bool
}
