import Hub
import Postgres

/// A question for a policy function, and the conversion of the reply to an answer.
struct PolicyRequest {
    /// Place of the question among those asked together.
    let index: Int
    let question: PolicyQuestion
    let function: PolicyFunction
    /// Time limit.
    private(set) var patience: Duration
    private(set) var call: PolicyCall

    /// Answers whatever the plan answers by itself.
    ///
    /// - Returns: nil if that is all. A request may also have no subjects left, if they lack columns or claims.
    init?(
        _ question: PolicyQuestion, at index: Int, _ plan: PolicyPlan, within patience: Duration,
        _ answer: inout PolicyAnswer
    ) {
        answer = PolicyAnswer(hiding: question)
        if question.wantsTablesRead { answer.tablesRead = [] }
        switch plan.way {
        case .denied(let sentence):
            answer.isDenied = true
            answer.problems = [sentence]
            return nil
        case .failed(let sentence, let failure):
            answer.tablesRead = nil
            answer.problems = [sentence]
            for subject in question.subjects.indices { answer.recordFailure(subject, by: failure) }
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
            self.patience = patience
        }
        answer.columnsRead = plan.description.columnsRead
        call = PolicyCall(question, plan.description)
        let problem = PolicyProblem(question: question)
        if let column = call.records.missing { answer.addProblems([problem.lacks(column: column)]) }
        if let column = call.records.ambiguous { answer.addProblems([problem.isAmbiguous(column: column)]) }
        if call.unsendable > 0 { answer.problems.append(problem.unsendable(subjects: call.unsendable)) }
    }

    /// The same question about a single subject.
    func singleSubject(_ position: Int, within patience: Duration) -> PolicyRequest {
        var request = self
        request.call = call.singleSubject(position)
        request.patience = patience
        return request
    }

    func applyReply(_ reply: PolicyReply, into answer: inout PolicyAnswer) {
        for (subject, seen) in zip(call.subjects, reply.seen) where !seen.isEmpty {
            answer.visible[subject] = call.rows(of: question.subjects[subject], seen: seen)
        }
        for (subject, key) in zip(call.subjects, reply.keys) { answer.keys[subject] = key }
        let problem = PolicyProblem(question: question)
        if reply.omissions.contains(where: \.isLock) { answer.isRevivalLocked = true }
        for omission in reply.omissions { answer.addProblems([problem.leavesOut(omission.text)], for: []) }
        let counts = Dictionary(reply.failures.values.map { ($0, 1) }, uniquingKeysWith: +)
        answer.addProblems(
            counts.map { problem.failed($0.key, subjects: $0.value) }.sorted(),
            for: reply.failures.keys.map { call.subjects[$0] })
        for (position, failure) in reply.failures { answer.recordFailure(call.subjects[position], by: failure) }
        answer.tablesRead?.formUnion(reply.tablesRead)
        if reply.isBroken { answer.addProblems([problem.isBroken]) }
    }
}

/// The result of a policy function (`PolicyBody in Policies.sql`).
struct PolicyReply {
    /// The records that each subject of the call may see, as indices.
    private(set) var seen: [Set<Int>]
    private(set) var keys: [String?]
    /// The subjects of the call, as indices, whose policies met an error, with the last error.
    private(set) var failures: [Int: PolicyFailure] = [:]
    /// True if some records are no longer rows of the table.
    private(set) var isBroken = false
    private(set) var tablesRead: Set<UInt32> = []
    /// Rows that should have been put back and were not.
    var omissions: [Revival.Omission] = []

    /// - Returns: nil for a result of another shape.
    init?(_ result: QueryResult, subjects: Int) {
        guard result.width == 6, result.count == subjects + 1 else { return nil }
        seen = Array(repeating: [], count: subjects)
        keys = Array(repeating: nil, count: subjects)
        for row in 0..<result.count {
            guard let numbers = Self.parseNumbers(result.bytes(row, 1)) else { return nil }
            if let number = result.integer(row, 0) {
                guard number >= 1, number <= Int64(subjects) else { return nil }
                let subject = Int(number) - 1
                seen[subject] = Set(numbers.map { Int($0) - 1 })
                keys[subject] = result.text(row, 5)
                if let state = result.text(row, 2) {
                    failures[subject] = PolicyFailure(state: state, message: result.text(row, 3) ?? "")
                }
            } else {
                guard let tables = Self.parseNumbers(result.bytes(row, 4)) else { return nil }
                isBroken = !numbers.isEmpty
                tablesRead = Set(tables)
            }
        }
    }

    /// True if an error may be due to a table altered meanwhile.
    var mayBeStale: Bool {
        isBroken || failures.values.contains(where: \.isOfPolicy)
    }

    /// Parses a list such as `{1,2,3}`.
    ///
    /// - Returns: nil if a number is larger than any index or oid.
    private static func parseNumbers(_ text: UnsafeBufferPointer<UInt8>?) -> [UInt32]? {
        var numbers: [UInt32] = []
        var number: UInt32?
        for byte in text ?? UnsafeBufferPointer(start: nil, count: 0) {
            if (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) {
                guard let longer = UInt32(exactly: UInt64(number ?? 0) * 10 + UInt64(byte - UInt8(ascii: "0"))) else {
                    return nil
                }
                number = longer
            } else if let found = number {
                numbers.append(found)
                number = nil
            }
        }
        return numbers
    }
}

extension PolicyAnswer {
    /// Further sentences about one question add no information.
    private static let mostProblems = 5

    /// Adds problems of every subject. Policies that failed for all may have read anything.
    mutating func addProblems(_ sentences: [String]) {
        guard !sentences.isEmpty else { return }
        tablesRead = nil
        appendProblems(sentences)
    }

    /// Adds problems of some subjects. They say nothing about the others: one user's odd claims must not cost all others a
    /// scope.
    mutating func addProblems(_ sentences: [String], for subjects: [Int]) {
        failed.formUnion(subjects)
        appendProblems(sentences)
    }

    private mutating func appendProblems(_ sentences: [String]) {
        for sentence in sentences where problems.count < Self.mostProblems && !problems.contains(sentence) {
            problems.append(sentence)
        }
    }
}
