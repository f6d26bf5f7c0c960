import Hub
import Matching

/// What the policies are asked about the rows of a batch: one question for each table and role, each user once in it.
struct EntitlementInquiry {
    private struct Key: Hashable {
        let table: UInt32
        let role: String
        /// A table altered within the batch is two.
        let layout: ObjectIdentifier
    }

    private struct Asked {
        let key: Key
        let table: Table
        var rows: [[UInt8]] = []
        /// By the change's index.
        var numbers: [Int: Int] = [:]
        var subjects: [(claims: Claims, rows: [Int], places: [Int])] = []
        var subjectsByUser: [String: Int] = [:]
    }

    private var asked: [Asked] = []
    private var byKey: [Key: Int] = [:]

    var isEmpty: Bool { asked.isEmpty }

    /// - Parameter place: stands for it in `hidden`.
    mutating func ask(
        _ claims: Claims, _ role: String, ofUser user: String, about index: Int, _ change: RowChange, place: Int
    ) {
        let key = Key(table: change.table.oid, role: role, layout: ObjectIdentifier(change.table))
        let question = byKey[key] ?? asked.count
        if question == asked.count {
            asked.append(Asked(key: key, table: change.table))
            byKey[key] = question
        }
        let number = asked[question].numbers[index] ?? asked[question].rows.count
        if number == asked[question].rows.count {
            asked[question].rows.append(change.record ?? [])
            asked[question].numbers[index] = number
        }
        let subject = asked[question].subjectsByUser[user] ?? asked[question].subjects.count
        if subject == asked[question].subjects.count {
            asked[question].subjects.append((claims, [], []))
            asked[question].subjectsByUser[user] = subject
        }
        asked[question].subjects[subject].rows.append(number)
        asked[question].subjects[subject].places.append(place)
    }

    var questions: [PolicyQuestion] {
        asked.map { asked in
            PolicyQuestion(
                table: asked.table, command: .select, role: asked.key.role, rows: asked.rows,
                subjects: asked.subjects.map { PolicyQuestion.Subject(claims: $0.claims, rows: $0.rows.sorted()) })
        }
    }

    /// The places of what is not shown, or was not decided.
    func hidden(by answers: [PolicyAnswer]) -> Set<Int> {
        var hidden = Set<Int>()
        for (question, asked) in asked.enumerated() {
            for (number, subject) in asked.subjects.enumerated() {
                let visible = question < answers.count ? Set(answers[question].visible[number]) : []
                for (row, place) in zip(subject.rows, subject.places) where !visible.contains(row) {
                    hidden.insert(place)
                }
            }
        }
        return hidden
    }
}
