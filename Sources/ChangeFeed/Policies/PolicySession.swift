import Hub
import Logging
import Postgres

/// A connection that evaluates policies, and the functions it has created for that.
final class PolicySession {
    private let connection: PostgresConnection
    let limits: PolicyLimits
    private var plans: [PolicyPlan.Key: PolicyPlan] = [:]
    private var names = 0
    /// Time limit of locks that keep the catalog from showing a policy.
    private var catalogPatience = Duration.seconds(1)

    var isBroken: Bool { connection.isBroken }

    init(conninfo: String, logger: Logger, limits: PolicyLimits) throws {
        self.limits = limits
        connection = try PostgresConnection(
            ConnectionOptions(conninfo: conninfo), waiter: PlainWaiter(), logger: logger, within: limits.network)
        try connection.runScript(PolicySQL.policySession, within: limits.network)
        try AbandonedStatements.shared.demandFew(on: connection)
    }

    /// Drops the results of catalog look-ups, and the functions made from them.
    func dropPlans() throws {
        let functions = plans.values.compactMap(\.function)
        plans = [:]
        if !functions.isEmpty { try runScript("begin read write; \(dropStatement(functions)); commit") }
    }

    func plan(for question: PolicyQuestion) throws -> PolicyPlan {
        if let plan = plans[PolicyPlan.Key(question)], !plan.isWorthRetrying(at: .now) { return plan }
        return try makePlan(question)
    }

    /// - Returns: true if the catalog differs from when the plan was made; then the plan is made again.
    func remakePlan(_ question: PolicyQuestion) throws -> Bool {
        let old = plans[PolicyPlan.Key(question)]
        guard let old, try describePolicies(question) != old.description else { return false }
        _ = try makePlan(question)
        if let function = old.function { try runScript("begin read write; \(dropStatement([function])); commit") }
        return true
    }

    /// Sends the questions; those after a failure get no reply.
    func askRequests(_ requests: [PolicyRequest]) throws -> (replies: [PolicyReply], failure: PostgresError?) {
        var script = PolicyScript()
        for request in requests {
            script.append(request.call, to: request.question, request.function, patience: request.patience)
        }
        let patience = requests.reduce(.zero) { $0 + $1.patience }
        let thought = min(patience, max(requests.map(\.patience).max() ?? .zero, limits.together))
        let (finished, failure) = try connection.results(of: script.bytes, within: thought + limits.network)
        if failure != nil { try runScript("rollback") }
        var tables = finished.filter { $0.isTable }[...]
        var replies: [PolicyReply] = []
        for request in requests {
            let omissions = request.question.revival == nil ? nil : tables.popFirst()?.text(0, 0)
            guard let result = tables.popFirst(),
                var reply = PolicyReply(result, subjects: request.call.subjects.count)
            else { break }
            reply.omissions = (omissions ?? "").split(separator: "\n").map(Revival.Omission.init)
            replies.append(reply)
        }
        if failure == nil, replies.count != requests.count {
            throw PostgresError(.connection, "Postgres did not answer what the policies were asked.")
        }
        return (replies, failure)
    }

    private func makePlan(_ question: PolicyQuestion) throws -> PolicyPlan {
        names += 1
        var plan = PolicyPlan(
            question, try describePolicies(question), name: "roost_policy_\(names)",
            serverVersion: connection.serverVersion)
        if let function = plan.function {
            do {
                try runScript(inCatalog("\(function.creation); commit"))
            } catch let error as PostgresError where error.kind == .server && !error.isAboutLocks {
                try runScript("rollback")
                plan.markFailed(PolicyProblem(question: question).failedAsAWhole(error), PolicyFailure(error))
            }
        }
        plans[PolicyPlan.Key(question)] = plan
        return plan
    }

    private func describePolicies(_ question: PolicyQuestion) throws -> PolicyDescription {
        try runScript(inCatalog(""))
        let result = try connection.query(
            PolicySQL.policyDescription, ["\(question.table.oid)", question.role.text, question.command.rawValue],
            within: limits.network)
        try runScript("rollback")
        guard let description = PolicyDescription(result) else {
            throw PostgresError(.connection, "Postgres did not describe the policies of a table.")
        }
        return description
    }

    /// Wraps SQL in the search_path under which policies are shown as text, and have to be read again. To show one,
    /// Postgres opens the tables it names, which another session may have locked.
    private func inCatalog(_ sql: String) -> String {
        "begin read write; set local search_path = pg_catalog, pg_temp; "
            + "set local lock_timeout = '\(catalogPatience.milliseconds) ms'; \(sql)"
    }

    private func dropStatement(_ functions: [PolicyFunction]) -> String {
        "drop function " + functions.map { "pg_temp.\($0.name)" }.joined(separator: ", ")
    }

    func query(_ statement: PolicySQL, _ parameters: [String?]) throws -> QueryResult {
        try connection.query(statement, parameters, within: limits.network)
    }

    private func runScript(_ script: String) throws { try connection.runScript(script, within: limits.network) }
}

extension PolicySession {
    /// Number of subjects tried one by one before a lock is assumed to block all of them.
    private static let chancesAtLock = 3

    func answers(to parts: [AskedPart]) throws -> [PolicyAnswer] {
        var answers = parts.map { PolicyAnswer(hiding: $0.question) }
        var asking: [PolicyRequest] = []
        for (index, part) in parts.enumerated() {
            let question = part.question
            catalogPatience = part.isDoubtful ? limits.subject : limits.question
            // A name that is cut off at its NUL would be another role's.
            guard !question.role.utf8.contains(0) else {
                answers[index].addProblems([PolicyDenial.noSuchRole])
                continue
            }
            do {
                let request = try makeRequest(part, at: index, &answers[index])
                if let request, !request.call.subjects.isEmpty { asking.append(request) }
            } catch let error as PostgresError where error.kind == .server && error.isAboutLocks {
                try runScript("rollback")
                answers[index].waitsForLock(question.subjects.indices)
            }
        }
        var deadline: ContinuousClock.Instant?
        while !asking.isEmpty {
            let (replies, failure) = try askRequests(asking)
            for (request, reply) in zip(asking, replies) { try applyReply(request, reply, &answers[request.index]) }
            asking.removeFirst(replies.count)
            guard let failure, !asking.isEmpty else { continue }
            let faulty = asking.removeFirst()
            let isDoubtful = parts[faulty.index].isDoubtful
            try applyFailure(faulty, failure, isDoubtful: isDoubtful, &answers[faulty.index])
            guard failure.isAboutLocks, isDoubtful else { continue }
            // The wait for locks must not grow with the number of waiting questions.
            deadline = deadline ?? .now + limits.subjects
            let isOver = deadline.map { $0 <= .now } ?? false
            let isLocked = parts[faulty.index].subjects.count > 1
            asking.removeAll { request in
                let part = parts[request.index]
                let isLeft = part.isDoubtful && (isOver || isLocked && part.place == parts[faulty.index].place)
                if isLeft { answers[request.index].waitsForLock(part.question.subjects.indices) }
                return isLeft
            }
        }
        return answers
    }

    private func makeRequest(
        _ part: AskedPart, at index: Int, _ answer: inout PolicyAnswer
    ) throws -> PolicyRequest? {
        let question = part.question
        let patience = part.isDoubtful ? limits.subject : limits.question
        let request = PolicyRequest(question, at: index, try plan(for: question), within: patience, &answer)
        // A column that rows lack may be one that the table no longer has.
        guard let request, request.call.records.missing != nil, try remakePlan(question) else { return request }
        return PolicyRequest(question, at: index, try plan(for: question), within: patience, &answer)
    }

    private func applyReply(_ request: PolicyRequest, _ reply: PolicyReply, _ answer: inout PolicyAnswer) throws {
        // A table altered since the catalog was read has policies that fail on everything.
        if reply.mayBeStale, try isOutdated(request) {
            try askAgain(request, &answer)
        } else {
            request.applyReply(reply, into: &answer)
        }
    }

    private func applyFailure(
        _ request: PolicyRequest, _ failure: PostgresError, isDoubtful: Bool, _ answer: inout PolicyAnswer
    ) throws {
        if !failure.isOutOfTime, !failure.isAboutLocks, try isOutdated(request) {
            try askAgain(request, &answer)
        } else {
            try askEachSubject(of: request, after: failure, isDoubtful: isDoubtful, &answer)
        }
    }

    /// True if there is another plan to try; an earlier question of the same kind may have made it.
    private func isOutdated(_ request: PolicyRequest) throws -> Bool {
        do {
            return try plan(for: request.question).function?.name != request.function.name
                || remakePlan(request.question)
        } catch let error as PostgresError where error.kind == .server && error.isAboutLocks {
            // The next question checks again.
            try runScript("rollback")
            return false
        }
    }

    private func askAgain(_ request: PolicyRequest, _ answer: inout PolicyAnswer) throws {
        let question = request.question
        let again = PolicyRequest(
            question, at: request.index, try plan(for: question), within: request.patience, &answer)
        guard let request = again, !request.call.subjects.isEmpty else { return }
        let (replies, failure) = try askRequests([request])
        if let reply = replies.first {
            request.applyReply(reply, into: &answer)
        } else if let failure {
            try askEachSubject(of: request, after: failure, isDoubtful: false, &answer)
        }
    }

    /// Asks about the subjects one by one, because one subject must not hide the others' rows.
    ///
    /// If several in a row wait for a lock and none of them gets an answer, all are assumed to wait for it.
    private func askEachSubject(
        of request: PolicyRequest, after failure: PostgresError, isDoubtful: Bool, _ answer: inout PolicyAnswer
    ) throws {
        let subjects = request.call.subjects
        let wasLocked = failure.isAboutLocks
        if wasLocked, let only = subjects.first, subjects.count == 1 {
            answer.waitsForLock([only])
            answer.lockedAlone.insert(only)
            return
        }
        let deadline = ContinuousClock.now + limits.subjects
        var hung = 0
        /// Number of subjects that may still wait for the lock before it is assumed to block all; nil once one was
        /// answered.
        var chances: Int? = wasLocked ? isDoubtful ? 1 : Self.chancesAtLock : nil
        for (position, subject) in subjects.enumerated() {
            guard ContinuousClock.now < deadline, chances != 0 else {
                let left = subjects[position...]
                if wasLocked {
                    answer.waitsForLock(left)
                } else {
                    hung += left.count
                    answer.addProblems([], for: Array(left))
                }
                break
            }
            let single = request.singleSubject(position, within: limits.subject)
            let (replies, failure) = try askRequests([single])
            if let reply = replies.first {
                single.applyReply(reply, into: &answer)
                chances = nil
            } else if let failure, failure.isAboutLocks {
                answer.waitsForLock([subject])
                answer.lockedAlone.insert(subject)
                chances = chances.map { $0 - 1 }
            } else if let failure {
                if failure.isOutOfTime {
                    hung += 1
                } else {
                    answer.recordFailure(subject, by: PolicyFailure(failure))
                }
                let problem = PolicyProblem(question: request.question)
                answer.addProblems(failure.isOutOfTime ? [] : [problem.failedAsAWhole(failure)], for: [subject])
            }
        }
        if hung > 0 { answer.addProblems([PolicyProblem(question: request.question).hung(subjects: hung)], for: []) }
    }
}

extension PostgresError {
    /// True if another session holds a lock that the statement waits for, or two wait for each other.
    fileprivate var isAboutLocks: Bool { [SQLState.lockNotAvailable, SQLState.deadlock].contains(sqlState) }

    /// True if Postgres ended the statement at its time limit.
    fileprivate var isOutOfTime: Bool { sqlState == "57014" }
}
