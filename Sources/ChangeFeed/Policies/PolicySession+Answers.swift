import Hub
import Postgres

extension PolicySession {
    func answers(to questions: [PolicyQuestion]) throws -> [PolicyAnswer] {
        var answers = questions.map { PolicyAnswer(hiding: $0) }
        var asking: [PolicyInquiry] = []
        for (index, question) in questions.enumerated() {
            // A name that is cut off at its NUL would be another role's.
            guard !question.role.utf8.contains(0) else {
                answers[index].add([PolicyDenial.noSuchRole])
                continue
            }
            if let inquiry = try inquiry(question, at: index, &answers[index]), !inquiry.call.subjects.isEmpty {
                asking.append(inquiry)
            }
        }
        while !asking.isEmpty {
            let (replies, failure) = try ask(asking, within: limits.question)
            for (inquiry, reply) in zip(asking, replies) { try settle(inquiry, reply, &answers[inquiry.index]) }
            asking.removeFirst(replies.count)
            if let failure, !asking.isEmpty {
                let faulty = asking.removeFirst()
                try settle(faulty, failure, &answers[faulty.index])
            }
        }
        return answers
    }

    private func inquiry(
        _ question: PolicyQuestion, at index: Int, _ answer: inout PolicyAnswer
    ) throws -> PolicyInquiry? {
        let inquiry = PolicyInquiry(question, at: index, try plan(for: question), &answer)
        // A column that rows do not have may be one that the table has no more.
        guard let inquiry, inquiry.call.records.missing != nil, try replan(question) else { return inquiry }
        return PolicyInquiry(question, at: index, try plan(for: question), &answer)
    }

    private func settle(_ inquiry: PolicyInquiry, _ reply: PolicyReply, _ answer: inout PolicyAnswer) throws {
        // A table altered since the catalog was read has policies that fail on everything.
        if reply.mayBeStale, try isOutdated(inquiry) {
            try askAgain(inquiry, &answer)
        } else {
            inquiry.take(reply, into: &answer)
        }
    }

    private func settle(_ inquiry: PolicyInquiry, _ failure: PostgresError, _ answer: inout PolicyAnswer) throws {
        if !failure.isOutOfTime, try isOutdated(inquiry) {
            try askAgain(inquiry, &answer)
        } else {
            try askEachSubject(of: inquiry, after: failure, &answer)
        }
    }

    /// Whether there is another plan to try; an earlier question of the same kind may have made it.
    private func isOutdated(_ inquiry: PolicyInquiry) throws -> Bool {
        try plan(for: inquiry.question).function?.name != inquiry.function.name || replan(inquiry.question)
    }

    private func askAgain(_ inquiry: PolicyInquiry, _ answer: inout PolicyAnswer) throws {
        let question = inquiry.question
        let again = PolicyInquiry(question, at: inquiry.index, try plan(for: question), &answer)
        guard let inquiry = again, !inquiry.call.subjects.isEmpty else { return }
        let (replies, failure) = try ask([inquiry], within: limits.question)
        if let reply = replies.first {
            inquiry.take(reply, into: &answer)
        } else if let failure {
            try askEachSubject(of: inquiry, after: failure, &answer)
        }
    }

    /// One subject must not hide the others' rows.
    private func askEachSubject(
        of inquiry: PolicyInquiry, after failure: PostgresError, _ answer: inout PolicyAnswer
    ) throws {
        let deadline = ContinuousClock.now + limits.subjects
        var hung = 0
        for position in inquiry.call.subjects.indices {
            guard ContinuousClock.now < deadline else {
                hung += inquiry.call.subjects.count - position
                answer.add([], for: Array(inquiry.call.subjects[position...]))
                break
            }
            let single = inquiry.alone(position)
            let (replies, failure) = try ask([single], within: limits.subject)
            if let reply = replies.first {
                single.take(reply, into: &answer)
            } else if let failure {
                if failure.isOutOfTime {
                    hung += 1
                } else {
                    answer.undecided.insert(inquiry.call.subjects[position])
                }
                let problem = PolicyProblem(question: inquiry.question)
                answer.add(
                    failure.isOutOfTime ? [] : [problem.failedAsAWhole(failure)], for: [inquiry.call.subjects[position]]
                )
            }
        }
        if hung > 0 { answer.add([PolicyProblem(question: inquiry.question).hung(subjects: hung)], for: []) }
    }
}

extension PostgresError {
    /// Postgres ended the statement when its time was over.
    fileprivate var isOutOfTime: Bool { sqlState == "57014" }
}
