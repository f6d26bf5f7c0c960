package import Hub
import Logging
import Matching
import Postgres
import Wire
import Workers

/// Decides which rows a subscriber may see: exactly those that a SELECT with the same claims would show.
///
/// Confined to the feed's thread. Undecidable rows are not shown; only if the database does not answer at all is the
/// decision put off, by throwing.
struct Visibility: ~Copyable {
    private var policies: PolicyPool
    private var cache = ScopeCache()
    private var catalog = Catalog()
    private var log: RateLimitedLog
    private let logger: Logger
    private(set) var statistics = VisibilityStatistics()
    /// Endings to report, until taken; and when each was last reported.
    private var endings: [PolicyEnding] = []
    private var told: [PolicyEnding: ContinuousClock.Instant] = [:]
    private var troubles = PolicyTroubles()
    /// The tables from which transactions deleted rows.
    private var deletedTables: [WriterTransaction: Set<UInt32>] = [:]
    /// The time until which no rows are put back, because another session holds a lock on their table.
    private var revivesAt: ContinuousClock.Instant?
    private static let mostTransactions = 1000
    private static let lockPause = Duration.seconds(1)

    /// - Parameter helpers: evaluate policies besides this thread.
    init(conninfo: String, helpers: [PolicyHelper], logger: Logger) {
        policies = PolicyPool(PolicyEngine(conninfo: conninfo, logger: logger), helpers: helpers)
        log = RateLimitedLog(logger: logger)
        self.logger = logger
    }

    mutating func catalogChanged(_ catalog: Catalog) {
        if catalog.version != self.catalog.version {
            cache.forgetAll()
            troubles.catalogChanged()
        }
        self.catalog = catalog
    }

    mutating func membersChanged(_ changes: [MemberChange]) {
        for (table, scope) in catalog.scopes {
            let concern = MemberConcern(of: changes, scope)
            if !concern.isNobody { cache.forgetAnswers(about: table, concern) }
        }
    }

    /// The scope by which answers about a table may be kept, for a role.
    func scope(of table: Table, for role: Name) -> Scope? {
        guard let scope = catalog.scopes[table.oid], cache.scopeHolds(table.oid, role),
            // Changes of a table that is not watched would go unnoticed.
            scope.members.allSatisfy({ catalog.table($0) != nil })
        else { return nil }
        return scope
    }

    mutating func findAnswers(_ table: UInt32, _ value: [UInt8], at now: ContinuousClock.Instant) -> ScopeAnswers {
        cache.findAnswers(table, value, at: now)
    }

    mutating func findAnswers(
        _ table: UInt32, _ value: [UInt8], before transaction: WriterTransaction, at now: ContinuousClock.Instant
    ) -> ScopeAnswers {
        cache.findAnswers(table, value, before: transaction, at: now)
    }

    // MARK: Deleted rows

    /// Finds out what else transactions deleted.
    ///
    /// - Throws: `PostgresError` if the database does not answer.
    mutating func learnDeletions(by transactions: Set<WriterTransaction>) throws {
        let unknown = transactions.filter { deletedTables[$0] == nil }
        guard !unknown.isEmpty else { return }
        if deletedTables.count >= Self.mostTransactions { deletedTables = [:] }
        let found = try policies.deletedTables(by: Array(unknown), version: catalog.version)
        deletedTables.merge(found) { $1 }
    }

    /// The rows to put back while rows that a transaction deleted are judged; nil if that would make no difference.
    ///
    /// - Parameter reads: the tables that the policies read; nil if unknown.
    func revival(for transaction: WriterTransaction, reads: Set<UInt32>?) -> Revival? {
        guard let tables = deletedTables[transaction], reads.map({ !tables.isDisjoint(with: $0) }) ?? !tables.isEmpty,
            revivesAt.map({ $0 <= .now }) ?? true
        else { return nil }
        return Revival(transaction: transaction, tables: tables.sorted())
    }

    /// Decides all the questions in one round trip.
    ///
    /// - Returns: false if a scope turned out to be wrong: then answers based on it do not count, and the batch has to be
    ///   asked again without the scope.
    /// - Throws: `PostgresError` if the database does not answer.
    mutating func decideQuestions(_ questions: [VisibilityQuestion]) throws -> Bool {
        for question in questions { statistics.kept += question.kept }
        let open = questions.filter { !$0.isAnswered }
        guard !open.isEmpty else { return true }
        statistics.roundTrips += 1
        for subject in open.lazy.flatMap(\.subjects) { statistics.asked += subject.rows.count }
        let began = ContinuousClock.now
        let answers = try policies.answers(to: open.map(Self.policyQuestion), version: catalog.version)
        statistics.time.recordDuration(nanoseconds: Int64((ContinuousClock.now - began) / .nanoseconds(1)))
        var holds = true
        for (question, answer) in zip(open, answers) {
            for problem in answer.problems { log.logWarning(problem) }
            if answer.isRevivalLocked { revivesAt = .now + Self.lockPause }
            // Tables of rows put back are locked as well, and would seem to be read; the same question was asked before
            // without them.
            if question.revival != nil { continue }
            question.tablesRead = answer.tablesRead
            if question.isScoped, !isCovered(question, answer) {
                holds = false
                if cache.disproveScope(question.table.oid, question.role) { logDisproof(about: question) }
            }
        }
        guard holds else { return false }
        for (question, answer) in zip(open, answers) {
            for subject in answer.ending { reportEnding(question, question.subjects[subject].principal.claims) }
            for (subject, visible) in answer.visible.enumerated() {
                question.storeDecision(
                    subject, visible, isFinal: !answer.failed.contains(subject),
                    isUndecided: answer.undecided.contains(subject),
                    isOfData: answer.failures[subject]?.isOfData ?? false, isLocked: answer.locked.contains(subject),
                    key: answer.keys[subject])
            }
            endings += troubles.recordAnswer(question, answer, at: .now)
        }
        return true
    }

    private mutating func reportEnding(_ question: VisibilityQuestion, _ claims: Claims) {
        let now = ContinuousClock.now
        let ending = PolicyEnding(question, claims, .endsSession)
        guard told[ending].map({ $0 + PolicyTrials.bar <= now }) ?? true else { return }
        told = told.filter { $0.value + PolicyTrials.bar > now }
        told[ending] = now
        endings.append(ending)
    }

    /// Takes the notices to users who are shown nothing of a table for a while.
    mutating func takeEndings() -> [PolicyEnding] {
        defer { endings = [] }
        return endings
    }

    /// The tables of which a user is shown nothing, and for how much longer.
    func endings(
        for claims: Claims, as role: Name, at now: ContinuousClock.Instant
    ) -> [(PolicyEnding, left: Duration)] {
        let lasting = troubles.failures(for: claims, as: role, at: now)
        if told.isEmpty { return lasting }
        return lasting
            + told.compactMap { ending, since in
                let left = since + PolicyTrials.bar - now
                return ending.role == role && ending.claims == claims && left > .zero ? (ending, left) : nil
            }
    }

    private static func policyQuestion(_ question: VisibilityQuestion) -> PolicyQuestion {
        PolicyQuestion(
            table: question.table, command: .select, role: question.role, rows: question.rows.map(\.record),
            subjects: question.subjects.map { subject in
                PolicyQuestion.Subject(claims: subject.principal.claims, rows: subject.rows.sorted())
            }, wantsTablesRead: question.revival == nil && (question.isScoped || question.hasDeletions),
            userKey: question.userKey, revival: question.revival)
    }

    /// True if the policies read nothing beyond the scope's declaration.
    private func isCovered(_ question: VisibilityQuestion, _ answer: PolicyAnswer) -> Bool {
        guard let scope = catalog.scopes[question.table.oid] else { return false }
        if answer.isUnrestricted { return true }
        guard let columns = answer.columnsRead, let tables = answer.tablesRead else { return false }
        return columns.isSubset(of: scope.columns) && tables.isSubset(of: scope.members)
    }

    private func logDisproof(about question: VisibilityQuestion) {
        logger.warning(
            """
            The scope of \(question.table.schema).\(question.table.name) does not hold for the role \(question.role), so \
            each row is judged by itself: its policies read more than its columns and members tables; run `roost \
            watch \(question.table.schema).\(question.table.name)` again, or `roost doctor`.
            """)
    }
}

/// A question to one table's policies about a batch of changes, for all users of one role.
///
/// If a scope holds, all rows of one scope value are one row here, and earlier answers are not asked for again.
final class VisibilityQuestion {
    let table: Table
    let role: Name
    private(set) var rows: [Row] = []
    private(set) var subjects: [Subject] = []
    private var numbers: [RowID: Int] = [:]
    private var numbersByScope: [[UInt8]: Int] = [:]
    private var subjectNumbers: [Int: Int] = [:]
    private let scope: Scope?
    /// True if rows with the same scope value are alike; not so with JSON columns, whose nulls differ.
    private let hasKeys: Bool
    /// Rows that are put back while it is asked.
    let revival: Revival?
    /// True if some of its rows are deleted ones.
    var hasDeletions = false
    /// The tables that policies read for the question; nil if unknown.
    var tablesRead: Set<UInt32>?
    /// Number of times that a kept answer sufficed.
    private(set) var kept = 0

    /// A version of a row.
    struct RowID: Hashable {
        /// The change's place in its batch.
        let change: Int
        let isOld: Bool
    }

    struct Row {
        let record: [UInt8]
        /// The known answers for its scope value; nil without a scope.
        let known: ScopeAnswers?
    }

    struct Subject {
        let principal: Principal
        /// Indices into `rows`.
        var rows: Set<Int> = []
        /// Those of `rows` that are visible; none until decided.
        var visible: Set<Int> = []
        /// True if there was an error that may pass.
        var isUndecided = false
        /// True if that error is about values, so that it may never pass.
        var isOfData = false
        /// True if policies wait for a lock.
        var isLocked = false
        /// True if it was decided without an error.
        var isFinal = false
    }

    /// - Parameter scope: the scope that holds for this table and role, or nil.
    init(table: Table, role: Name, scope: Scope?, revival: Revival? = nil) {
        self.revival = revival
        self.table = table
        self.role = role
        self.scope = scope
        hasKeys = !table.columns.contains { $0.isJSON && scope?.columns.contains($0.name) == true }
    }

    var isScoped: Bool { scope != nil }

    /// The tables that decide; nil if unknown.
    var reads: Set<UInt32>? { scope?.members ?? tablesRead }

    var userKey: Name? { scope?.userKey }

    /// True if no question is left for Postgres.
    var isAnswered: Bool { subjects.isEmpty }

    /// Adds a version of a row and returns its number, by which it is asked about and looked up.
    ///
    /// - Parameter known: returns the answers for a scope value.
    func addRow(_ id: RowID, _ record: [UInt8], known: ([UInt8]) -> ScopeAnswers) -> Int {
        let value = hasKeys ? scope.flatMap { $0.value(of: record) } : nil
        if let value, let number = numbersByScope[value] {
            numbers[id] = number
            return number
        }
        rows.append(Row(record: record, known: value.map(known)))
        numbers[id] = rows.count - 1
        if let value { numbersByScope[value] = rows.count - 1 }
        return rows.count - 1
    }

    /// Asks whether a user may see a row.
    func addAsker(_ principal: Principal, _ row: Int) {
        if rows[row].known?[principal] != nil {
            kept += 1
            return
        }
        let place = subjectNumbers[principal.number] ?? addSubject(principal)
        subjects[place].rows.insert(row)
    }

    /// The number of a row version that was added.
    func number(of id: RowID) -> Int? { numbers[id] }

    private func addSubject(_ principal: Principal) -> Int {
        subjects.append(Subject(principal: principal))
        subjectNumbers[principal.number] = subjects.count - 1
        return subjects.count - 1
    }

    /// - Parameters:
    ///   - isFinal: true if the answer may be kept; an error may be gone the next time.
    ///   - isUndecided: true if asking again soon may bring another answer.
    ///   - isOfData: true if that is because of an error about values.
    ///   - isLocked: true if that is because of a lock.
    ///   - key: the user key, which selects the rows of members tables that concern the subject; nil if all may.
    func storeDecision(
        _ subject: Int, _ visible: [Int], isFinal: Bool, isUndecided: Bool = false, isOfData: Bool = false,
        isLocked: Bool = false, key: String? = nil
    ) {
        subjects[subject].visible = Set(visible)
        subjects[subject].isUndecided = isUndecided
        subjects[subject].isFinal = isFinal
        subjects[subject].isOfData = isOfData
        subjects[subject].isLocked = isLocked
        guard isFinal else { return }
        for row in subjects[subject].rows {
            rows[row].known?.storeAnswer(
                subjects[subject].visible.contains(row), for: subjects[subject].principal, key: key)
        }
    }

    /// True if a user may see a row; a row that was not asked about is not visible.
    func sees(_ principal: Principal, _ row: Int) -> Bool {
        if let known = rows[row].known?[principal] { return known }
        guard let place = subjectNumbers[principal.number] else { return false }
        return subjects[place].visible.contains(row)
    }

    /// True if it is unknown whether a user may see a row, because a policy failed.
    func isUndecided(_ principal: Principal, _ row: Int) -> Bool {
        guard rows[row].known?[principal] == nil, let place = subjectNumbers[principal.number] else { return false }
        return subjects[place].isUndecided && !subjects[place].visible.contains(row)
    }

    /// True if it was decided, without an error, whether a user may see a row.
    func isDecided(_ principal: Principal, _ row: Int) -> Bool {
        if rows[row].known?[principal] != nil { return true }
        return subjectNumbers[principal.number].map { subjects[$0].isFinal } ?? false
    }

    /// True if a lock keeps a user's rows from being decided.
    func isLocked(_ principal: Principal) -> Bool {
        subjectNumbers[principal.number].map { subjects[$0].isLocked } ?? false
    }

    /// True if the error that kept a user's rows from being decided is about values.
    func isOfData(_ principal: Principal) -> Bool {
        subjectNumbers[principal.number].map { subjects[$0].isOfData } ?? false
    }
}

/// The cost of deciding who sees which rows, since the start.
package struct VisibilityStatistics: Sendable {
    /// Decisions (a row and a user who may see it) for which Postgres was asked.
    package internal(set) var asked = 0
    /// Decisions for which a kept answer sufficed.
    package internal(set) var kept = 0
    /// Round trips to Postgres.
    package internal(set) var roundTrips = 0
    /// Duration of each round trip.
    package internal(set) var time = Histogram.ofLatency

    package init() {}
}
