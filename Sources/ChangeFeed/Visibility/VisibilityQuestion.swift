import Hub
import Matching
import Wire

/// What the policies of one table are asked about a batch of changes, on behalf of everybody of one role.
///
/// Where a scope holds, rows of one scope value are one row here, and what was answered before is not asked again.
final class VisibilityQuestion {
    let table: Table
    let role: String
    private(set) var rows: [Row] = []
    private(set) var subjects: [Subject] = []
    private var numbers: [RowID: Int] = [:]
    private var numbersByScope: [[UInt8]: Int] = [:]
    private var subjectNumbers: [Int: Int] = [:]
    private let scope: Scope?
    /// How often a kept answer did.
    private(set) var kept = 0

    /// A version of a row.
    struct RowID: Hashable {
        /// The change's place in its batch.
        let change: Int
        let isOld: Bool
    }

    struct Row {
        let record: [UInt8]
        /// What is known of its scope value; nil without a scope.
        let known: ScopeAnswers?
    }

    struct Subject {
        let principal: Principal
        /// Indices into `rows`.
        var rows: Set<Int> = []
        /// Those of them that are visible; none until decided.
        var visible: Set<Int> = []
        /// An error that may pass stood in the way.
        var isUndecided = false
    }

    /// - Parameter scope: the one that holds for this table and role, or nil.
    init(table: Table, role: String, scope: Scope?) {
        self.table = table
        self.role = role
        self.scope = scope
    }

    var isScoped: Bool { scope != nil }

    /// Nothing is left that Postgres has to be asked.
    var isAnswered: Bool { subjects.isEmpty }

    /// The number of a row, which stands for it in `ask` and `sees`.
    ///
    /// - Parameter known: the answers for a scope value.
    func row(_ id: RowID, _ record: [UInt8], known: ([UInt8]) -> ScopeAnswers) -> Int {
        let value = scope.flatMap { JSON(trusted: record[...])[$0.column].map { Array($0.bytes) } }
        if let value, let number = numbersByScope[value] {
            numbers[id] = number
            return number
        }
        rows.append(Row(record: record, known: value.map(known)))
        numbers[id] = rows.count - 1
        if let value { numbersByScope[value] = rows.count - 1 }
        return rows.count - 1
    }

    /// Asks whether somebody may see a row.
    func ask(_ principal: Principal, _ row: Int) {
        if rows[row].known?[principal] != nil {
            kept += 1
            return
        }
        let place = subjectNumbers[principal.number] ?? add(principal)
        subjects[place].rows.insert(row)
    }

    /// The number of a row that `row` was called for.
    func number(of id: RowID) -> Int? { numbers[id] }

    private func add(_ principal: Principal) -> Int {
        subjects.append(Subject(principal: principal))
        subjectNumbers[principal.number] = subjects.count - 1
        return subjects.count - 1
    }

    /// - Parameters:
    ///   - isFinal: whether the answer may be kept; an error may be gone the next time.
    ///   - isUndecided: whether asking again soon may bring another one.
    func decide(_ subject: Int, _ visible: [Int], isFinal: Bool, isUndecided: Bool = false) {
        subjects[subject].visible = Set(visible)
        subjects[subject].isUndecided = isUndecided
        guard isFinal else { return }
        for row in subjects[subject].rows {
            rows[row].known?[subjects[subject].principal] = subjects[subject].visible.contains(row)
        }
    }

    /// Whether somebody may see a row; nobody sees what was not asked about.
    func sees(_ principal: Principal, _ row: Int) -> Bool {
        if let known = rows[row].known?[principal] { return known }
        guard let place = subjectNumbers[principal.number] else { return false }
        return subjects[place].visible.contains(row)
    }

    /// Whether it is not known if somebody may see a row, as a policy failed.
    func isUndecided(_ principal: Principal, _ row: Int) -> Bool {
        guard rows[row].known?[principal] == nil, let place = subjectNumbers[principal.number] else { return false }
        return subjects[place].isUndecided && !subjects[place].visible.contains(row)
    }
}
