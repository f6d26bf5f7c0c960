import Hub

/// One call of a policy function: what is sent, and whose answer is whose.
struct PolicyCall {
    let records: PolicyRecords
    /// Indices of the question's subjects, in the order in which they are sent.
    private(set) var subjects: [Int] = []
    /// For each subject that is sent its records, ascending and each once.
    private(set) var picks: [[Int]] = []
    /// Subjects whose claims Postgres has no text for.
    private(set) var unsendable = 0

    init(_ question: PolicyQuestion, columns: Set<String>) {
        records = PolicyRecords(question, columns: columns)
        // A record is among a subject's if it bears the subject's stamp.
        var stamps = [Int](repeating: -1, count: records.records.count)
        for (index, subject) in question.subjects.enumerated() {
            var wanted: [Int] = []
            wanted.reserveCapacity(subject.rows.count)
            for row in subject.rows {
                guard let place = records.places[row], stamps[place] != index else { continue }
                stamps[place] = index
                wanted.append(place)
            }
            guard !wanted.isEmpty else { continue }
            guard Self.isSendable(subject) else {
                unsendable += 1
                continue
            }
            subjects.append(index)
            picks.append(wanted)
        }
    }

    /// Postgres ends a text at a NUL.
    private static func isSendable(_ subject: PolicyQuestion.Subject) -> Bool {
        !subject.claims.json.contains(0) && !(subject.claims.subject ?? "").utf8.contains(0)
            && !(subject.topic ?? "").utf8.contains(0)
    }

    /// The same call for one of its subjects.
    func alone(_ position: Int) -> PolicyCall {
        var call = self
        call.subjects = [subjects[position]]
        call.picks = [picks[position]]
        return call
    }

    /// The rows of a subject whose records are among `seen`.
    func rows(of subject: PolicyQuestion.Subject, seen: Set<Int>) -> [Int] {
        subject.rows.filter { row in records.places[row].map(seen.contains) ?? false }
    }
}
