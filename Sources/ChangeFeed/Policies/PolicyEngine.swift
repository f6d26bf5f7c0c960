import Hub
package import Logging
package import Postgres

/// Decides as Postgres' row level security would which rows a user may see or write.
///
/// It asks the table's own policies about the row as the change has it, as the user's role and with the settings that
/// PostgREST makes of a token. The row itself is not looked up: it may have changed again, and a version that was
/// hidden must not be shown because a later one is not.
///
/// - Whatever cannot be decided is hidden, and from those alone whom it cannot be decided for.
/// - A policy sees a JSON null in a column as SQL's null: in a record both look alike. A policy that reads system
///   columns (`ctid`, `tableoid`) cannot be asked, and hides everything.
/// - Confined to one thread, on which it waits. It owns its connection: opened with the first question, and again where
///   it was lost.
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

    /// - Parameter limits: how long policies may think.
    package init(conninfo: String, logger: Logger, limits: PolicyLimits) {
        self.conninfo = conninfo
        self.logger = logger
        self.limits = limits
    }

    /// One answer for each question, all in one round trip where nothing has to be looked up in the catalog.
    ///
    /// A session that was lost since the last questions is replaced here and now: the caller may be the feed, which would
    /// take the loss for its own and begin anew. Whoever's policies end the session that asks them is hidden the rows, and the
    /// others are answered (`PolicyTrials`).
    ///
    /// - Parameter version: differs whenever a table, a policy, a role or a privilege does: what was looked up under
    ///   another is forgotten. Between a change and the new version the old policies answer.
    /// - Throws: `PostgresError` of kind `connection` or `timeout` where nothing is decided, as the database is away or
    ///   a table that the policies read is locked against reading. Ask again then.
    package mutating func answers(
        to questions: [PolicyQuestion], version: String
    ) throws(PostgresError) -> [PolicyAnswer] {
        trials.forgetOld(at: .now)
        while !trials.isApart(questions) {
            if let answers = try attempt(questions, version) {
                trials.answered()
                return answers
            }
            trials.lostTogether()
        }
        let answers = try answersApart(to: questions, version)
        trials.answered()
        return answers
    }

    /// - Returns: nil where the questions cost the session that asked them.
    private mutating func attempt(
        _ questions: [PolicyQuestion], _ version: String
    ) throws(PostgresError) -> [PolicyAnswer]? {
        var answers = questions.map { PolicyAnswer(hiding: $0) }
        var asked: [(place: Int, question: PolicyQuestion, subjects: [Int])] = []
        for (place, question) in questions.enumerated() {
            let barred = trials.barred(of: question)
            for subject in barred { answers[place].endsSession(subject) }
            if barred.isEmpty {
                asked.append((place, question, Array(question.subjects.indices)))
            } else if barred.count < question.subjects.count {
                let subjects = question.subjects.indices.filter { !barred.contains($0) }
                asked.append((place, question.part(subjects), subjects))
            }
        }
        guard let found = try ask(asked.map(\.question), version) else { return nil }
        for (part, found) in zip(asked, found) { answers[part.place].take(found, for: part.subjects, isFirst: true) }
        return answers
    }

    private mutating func ask(
        _ questions: [PolicyQuestion], _ version: String
    ) throws(PostgresError) -> [PolicyAnswer]? {
        guard !questions.isEmpty else { return [] }
        do {
            let session = try open(version)
            do {
                return try session.answers(to: questions)
            } catch let error as PostgresError where error.kind == .timeout && session.isBroken && questions.count > 1 {
                let fresh = try open(version)
                return try questions.flatMap { try fresh.answers(to: [$0]) }
            }
        } catch let error as PostgresError {
            let isLost = error.kind != .timeout && session?.isBroken == true
            // A refusal that nobody expected leaves a session in an unknown state, and would come again.
            let isRefused = error.kind == .server && session != nil
            if error.kind != .timeout || session?.isBroken == true { session = nil }
            if isLost || isRefused { return nil }
            throw error.kind == .server
                ? PostgresError(.connection, sqlState: error.sqlState, error.message) : error
        } catch {
            session = nil
            throw PostgresError(.connection, "\(error)")
        }
    }

    /// Asks one question after the other, and one that costs its session for one subject after the other.
    private mutating func answersApart(
        to questions: [PolicyQuestion], _ version: String
    ) throws(PostgresError) -> [PolicyAnswer] {
        var answers = questions.map { PolicyAnswer(hiding: $0) }
        let deadline = ContinuousClock.now + limits.subjects
        for (place, question) in questions.enumerated() {
            if !trials.isSuspect(question), let found = try attempt([question], version) {
                answers[place] = found[0]
                continue
            }
            // Before they are asked: where the server is gone after one, the others are not asked together again.
            trials.suspect(question, at: .now)
            for subject in question.subjects.indices {
                guard ContinuousClock.now < deadline else {
                    answers[place].failed.insert(subject)
                    answers[place].undecided.insert(subject)
                    continue
                }
                let alone = question.part([subject])
                while true {
                    if let found = try attempt([alone], version) {
                        answers[place].take(found[0], for: [subject], isFirst: subject == 0)
                        break
                    }
                    guard trials.strike(subject, of: question, at: .now) else { continue }
                    answers[place].endsSession(subject)
                    break
                }
            }
            trials.acquit(question)
            let ending = answers[place].ending.count
            if ending > 0 {
                answers[place].problems.append(PolicyProblem(question: question).endedSession(subjects: ending))
            }
        }
        return answers
    }

    /// Ends the session; the next question opens another.
    package mutating func close() { session = nil }

    private mutating func open(_ version: String) throws -> PolicySession {
        if let session, !session.isBroken, self.version == version { return session }
        if let session, !session.isBroken {
            try session.forget()
            self.version = version
            return session
        }
        let fresh = try PolicySession(conninfo: conninfo, logger: logger, limits: limits)
        session = fresh
        self.version = version
        return fresh
    }
}

/// A connection that asks policies, and the functions it has created for that.
final class PolicySession {
    private let connection: PostgresConnection
    let limits: PolicyLimits
    private var plans: [PolicyPlan.Key: PolicyPlan] = [:]
    private var names = 0

    var isBroken: Bool { connection.isBroken }

    init(conninfo: String, logger: Logger, limits: PolicyLimits) throws {
        self.limits = limits
        connection = try PostgresConnection(
            ConnectionOptions(conninfo: conninfo), waiter: PlainWaiter(), logger: logger, within: limits.network)
        try connection.run(PolicySQL.policySession, within: limits.network)
        try AbandonedStatements.shared.demandFew(on: connection)
    }

    /// Drops what was looked up in the catalog, and the functions made of it.
    func forget() throws {
        let functions = plans.values.compactMap(\.function)
        plans = [:]
        if !functions.isEmpty { try run("begin read write; \(drop(functions)); commit") }
    }

    func plan(for question: PolicyQuestion) throws -> PolicyPlan {
        if let plan = plans[PolicyPlan.Key(question)], !plan.isWorthRetrying(at: .now) { return plan }
        return try makePlan(question)
    }

    /// - Returns: whether the catalog says anything else than it did when the plan was made; the plan follows it then.
    func replan(_ question: PolicyQuestion) throws -> Bool {
        let old = plans[PolicyPlan.Key(question)]
        guard let old, try describe(question) != old.description else { return false }
        _ = try makePlan(question)
        if let function = old.function { try run("begin read write; \(drop([function])); commit") }
        return true
    }

    /// Sends the questions; what is behind a failure gets no reply.
    ///
    /// - Parameter patience: for each question.
    func ask(
        _ requests: [PolicyRequest], within patience: Duration
    ) throws -> (replies: [PolicyReply], failure: PostgresError?) {
        var script = PolicyScript()
        for request in requests {
            script.append(request.call, to: request.question, request.function, patience: patience)
        }
        let thought = min(patience * requests.count, max(patience, limits.together))
        let (finished, failure) = try connection.results(of: script.bytes, within: thought + limits.network)
        if failure != nil { try run("rollback") }
        let replies = zip(requests, finished.filter { $0.isTable }).compactMap { request, result in
            PolicyReply(result, subjects: request.call.subjects.count)
        }
        if failure == nil, replies.count != requests.count {
            throw PostgresError(.connection, "Postgres did not answer what the policies were asked.")
        }
        if let failure, failure.isAboutLocks {
            throw PostgresError(.timeout, sqlState: failure.sqlState, "A policy waits for a lock (\(failure.message)).")
        }
        return (replies, failure)
    }

    private func makePlan(_ question: PolicyQuestion) throws -> PolicyPlan {
        names += 1
        var plan = PolicyPlan(
            question, try describe(question), name: "roost_policy_\(names)", serverVersion: connection.serverVersion)
        if let function = plan.function {
            do {
                try run(inCatalog("\(function.creation); commit"))
            } catch let error as PostgresError where error.kind == .server && !error.isAboutLocks {
                try run("rollback")
                plan.fail(PolicyProblem(question: question).failedAsAWhole(error))
            }
        }
        plans[PolicyPlan.Key(question)] = plan
        return plan
    }

    private func describe(_ question: PolicyQuestion) throws -> PolicyDescription {
        try run(inCatalog(""))
        let result = try connection.query(
            PolicySQL.policyDescription, ["\(question.table.oid)", question.role.text, question.command.rawValue],
            within: limits.network)
        try run("rollback")
        guard let description = PolicyDescription(result) else {
            throw PostgresError(.connection, "Postgres did not describe the policies of a table.")
        }
        return description
    }

    /// The search_path under which policies are shown as text, and have to be read again. To show one, Postgres opens
    /// the tables it names, which somebody may have locked.
    private func inCatalog(_ sql: String) -> String {
        "begin read write; set local search_path = pg_catalog, pg_temp; "
            + "set local lock_timeout = '\(limits.question.components.seconds + 1) s'; \(sql)"
    }

    private func drop(_ functions: [PolicyFunction]) -> String {
        "drop function " + functions.map { "pg_temp.\($0.name)" }.joined(separator: ", ")
    }

    private func run(_ script: String) throws { try connection.run(script, within: limits.network) }
}

extension PolicySession {
    func answers(to questions: [PolicyQuestion]) throws -> [PolicyAnswer] {
        var answers = questions.map { PolicyAnswer(hiding: $0) }
        var asking: [PolicyRequest] = []
        for (index, question) in questions.enumerated() {
            // A name that is cut off at its NUL would be another role's.
            guard !question.role.utf8.contains(0) else {
                answers[index].add([PolicyDenial.noSuchRole])
                continue
            }
            if let request = try request(question, at: index, &answers[index]), !request.call.subjects.isEmpty {
                asking.append(request)
            }
        }
        while !asking.isEmpty {
            let (replies, failure) = try ask(asking, within: limits.question)
            for (request, reply) in zip(asking, replies) { try settle(request, reply, &answers[request.index]) }
            asking.removeFirst(replies.count)
            if let failure, !asking.isEmpty {
                let faulty = asking.removeFirst()
                try settle(faulty, failure, &answers[faulty.index])
            }
        }
        return answers
    }

    private func request(
        _ question: PolicyQuestion, at index: Int, _ answer: inout PolicyAnswer
    ) throws -> PolicyRequest? {
        let request = PolicyRequest(question, at: index, try plan(for: question), &answer)
        // A column that rows do not have may be one that the table has no more.
        guard let request, request.call.records.missing != nil, try replan(question) else { return request }
        return PolicyRequest(question, at: index, try plan(for: question), &answer)
    }

    private func settle(_ request: PolicyRequest, _ reply: PolicyReply, _ answer: inout PolicyAnswer) throws {
        // A table altered since the catalog was read has policies that fail on everything.
        if reply.mayBeStale, try isOutdated(request) {
            try askAgain(request, &answer)
        } else {
            request.take(reply, into: &answer)
        }
    }

    private func settle(_ request: PolicyRequest, _ failure: PostgresError, _ answer: inout PolicyAnswer) throws {
        if !failure.isOutOfTime, try isOutdated(request) {
            try askAgain(request, &answer)
        } else {
            try askEachSubject(of: request, after: failure, &answer)
        }
    }

    /// Whether there is another plan to try; an earlier question of the same kind may have made it.
    private func isOutdated(_ request: PolicyRequest) throws -> Bool {
        try plan(for: request.question).function?.name != request.function.name || replan(request.question)
    }

    private func askAgain(_ request: PolicyRequest, _ answer: inout PolicyAnswer) throws {
        let question = request.question
        let again = PolicyRequest(question, at: request.index, try plan(for: question), &answer)
        guard let request = again, !request.call.subjects.isEmpty else { return }
        let (replies, failure) = try ask([request], within: limits.question)
        if let reply = replies.first {
            request.take(reply, into: &answer)
        } else if let failure {
            try askEachSubject(of: request, after: failure, &answer)
        }
    }

    /// One subject must not hide the others' rows.
    private func askEachSubject(
        of request: PolicyRequest, after failure: PostgresError, _ answer: inout PolicyAnswer
    ) throws {
        let deadline = ContinuousClock.now + limits.subjects
        var hung = 0
        for position in request.call.subjects.indices {
            guard ContinuousClock.now < deadline else {
                hung += request.call.subjects.count - position
                answer.add([], for: Array(request.call.subjects[position...]))
                break
            }
            let single = request.alone(position)
            let (replies, failure) = try ask([single], within: limits.subject)
            if let reply = replies.first {
                single.take(reply, into: &answer)
            } else if let failure {
                if failure.isOutOfTime {
                    hung += 1
                } else {
                    answer.undecided.insert(request.call.subjects[position])
                }
                let problem = PolicyProblem(question: request.question)
                answer.add(
                    failure.isOutOfTime ? [] : [problem.failedAsAWhole(failure)], for: [request.call.subjects[position]]
                )
            }
        }
        if hung > 0 { answer.add([PolicyProblem(question: request.question).hung(subjects: hung)], for: []) }
    }
}

extension PostgresError {
    /// Somebody holds a lock that a reader waits for, or two wait for each other: asking again later helps.
    fileprivate var isAboutLocks: Bool { ["55P03", "40P01", "40001"].contains(sqlState) }

    /// Postgres ended the statement when its time was over.
    fileprivate var isOutOfTime: Bool { sqlState == "57014" }
}
