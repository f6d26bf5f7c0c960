import Hub

/// A question that a policy function has to be asked, and how its reply becomes an answer.
struct PolicyInquiry {
    /// Of the question among those asked together.
    let index: Int
    let question: PolicyQuestion
    let function: PolicyFunction
    private(set) var call: PolicyCall

    /// Answers what the plan answers by itself.
    ///
    /// - Returns: nil where that is all. An inquiry may also have no subjects left, which lack columns or claims.
    init?(_ question: PolicyQuestion, at index: Int, _ plan: PolicyPlan, _ answer: inout PolicyAnswer) {
        answer = PolicyAnswer(hiding: question)
        if question.wantsTablesRead { answer.tablesRead = [] }
        switch plan.way {
        case .denied(let sentence):
            answer.isDenied = true
            answer.problems = [sentence]
            return nil
        case .failed(let sentence):
            answer.tablesRead = nil
            answer.problems = [sentence]
            answer.undecided = Set(question.subjects.indices)
            return nil
        case .unrestricted:
            answer.isUnrestricted = true
            answer.visible = question.subjects.map(\.rows)
            answer.columnsRead = []
            return nil
        case .nothing:
            answer.columnsRead = []
            return nil
        case .ask(let function):
            self.index = index
            self.question = question
            self.function = function
        }
        answer.columnsRead = plan.description.columnsRead
        call = PolicyCall(question, columns: plan.description.columnsSent)
        let problem = PolicyProblem(question: question)
        if let column = call.records.missing { answer.add([problem.lacks(column: column)]) }
        if call.unsendable > 0 { answer.problems.append(problem.unsendable(subjects: call.unsendable)) }
    }

    /// The same question of one of the subjects that are asked about.
    func alone(_ position: Int) -> PolicyInquiry {
        var inquiry = self
        inquiry.call = call.alone(position)
        return inquiry
    }

    func take(_ reply: PolicyReply, into answer: inout PolicyAnswer) {
        for (subject, seen) in zip(call.subjects, reply.seen) where !seen.isEmpty {
            answer.visible[subject] = call.rows(of: question.subjects[subject], seen: seen)
        }
        let problem = PolicyProblem(question: question)
        let sentences = reply.problems.map { problem.failed($0.key, subjects: $0.value) }.sorted()
        let failed = reply.failed.map { call.subjects[$0] }
        answer.add(sentences, for: failed)
        answer.undecided.formUnion(reply.undecided.map { call.subjects[$0] })
        answer.tablesRead?.formUnion(reply.tablesRead)
        if reply.isBroken { answer.add([problem.isBroken]) }
    }
}

extension PolicyAnswer {
    /// More than a few sentences about one question tell nothing more.
    private static let mostProblems = 5

    /// What failed for everybody may have read anything.
    mutating func add(_ sentences: [String]) {
        guard !sentences.isEmpty else { return }
        tablesRead = nil
        note(sentences)
    }

    /// What failed for some says nothing about the others: one user's odd claims must not cost all the rest a scope.
    mutating func add(_ sentences: [String], for subjects: [Int]) {
        failed.formUnion(subjects)
        note(sentences)
    }

    private mutating func note(_ sentences: [String]) {
        for sentence in sentences where problems.count < Self.mostProblems && !problems.contains(sentence) {
            problems.append(sentence)
        }
    }
}
