package import Hub
import Logging
import Matching
import Postgres

/// Decides which rows a subscriber may see: exactly those that a SELECT with the same claims would show.
///
/// Confined to the feed's thread. What cannot be decided is not shown; only where the database does not answer at all is
/// the decision put off, by throwing.
struct Visibility: ~Copyable {
    private var engine: PolicyEngine
    private var cache = ScopeCache()
    private var catalog = Catalog()
    private var log: RateLimitedLog
    private let logger: Logger
    private(set) var statistics = VisibilityStatistics()

    init(conninfo: String, logger: Logger) {
        engine = PolicyEngine(conninfo: conninfo, logger: logger)
        log = RateLimitedLog(logger: logger)
        self.logger = logger
    }

    mutating func catalogChanged(_ catalog: Catalog) {
        if catalog.version != self.catalog.version { cache.forget() }
        self.catalog = catalog
    }

    mutating func membersChanged(_ tables: Set<UInt32>) {
        for (table, scope) in catalog.scopes where !scope.members.isDisjoint(with: tables) {
            cache.forgetAnswers(about: table)
        }
    }

    /// The scope that answers about a table may be kept by, for a role.
    func scope(of table: Table, for role: String) -> Scope? {
        guard let scope = catalog.scopes[table.oid], cache.holds(table.oid, role),
            // Of a table that is not watched nobody would hear that it changed.
            scope.members.allSatisfy({ catalog.table($0) != nil })
        else { return nil }
        return scope
    }

    mutating func answers(_ table: UInt32, _ value: [UInt8], at now: ContinuousClock.Instant) -> ScopeAnswers {
        cache.answers(table, value, at: now)
    }

    /// Decides all the questions in one round trip.
    ///
    /// - Returns: false where a scope turned out not to hold: nothing that was asked by it counts, and the batch has to be
    ///   asked again, without it.
    /// - Throws: `PostgresError` where the database does not answer.
    mutating func decide(_ questions: [VisibilityQuestion]) throws -> Bool {
        for question in questions { statistics.kept += question.kept }
        let open = questions.filter { !$0.isAnswered }
        guard !open.isEmpty else { return true }
        statistics.roundTrips += 1
        for subject in open.lazy.flatMap(\.subjects) { statistics.asked += subject.rows.count }
        let began = ContinuousClock.now
        let answers = try engine.answers(to: open.map(Self.policyQuestion), version: catalog.version)
        statistics.time.record(nanoseconds: Int64((ContinuousClock.now - began) / .nanoseconds(1)))
        var holds = true
        for (question, answer) in zip(open, answers) {
            for problem in answer.problems { log.note(problem) }
            if question.isScoped, !isCovered(question, answer) {
                holds = false
                if cache.disprove(question.table.oid, question.role) { complain(about: question) }
            }
        }
        guard holds else { return false }
        for (question, answer) in zip(open, answers) {
            for (subject, visible) in answer.visible.enumerated() {
                question.decide(
                    subject, visible, isFinal: !answer.failed.contains(subject),
                    isUndecided: answer.undecided.contains(subject))
            }
        }
        return true
    }

    private static func policyQuestion(_ question: VisibilityQuestion) -> PolicyQuestion {
        PolicyQuestion(
            table: question.table, command: .select, role: question.role, rows: question.rows.map(\.record),
            subjects: question.subjects.map { subject in
                PolicyQuestion.Subject(claims: subject.principal.claims, rows: subject.rows.sorted())
            }, wantsTablesRead: question.isScoped)
    }

    /// Whether the policies read nothing but what the scope declares.
    private func isCovered(_ question: VisibilityQuestion, _ answer: PolicyAnswer) -> Bool {
        guard let scope = catalog.scopes[question.table.oid] else { return false }
        if answer.isUnrestricted { return true }
        guard let columns = answer.columnsRead, let tables = answer.tablesRead else { return false }
        return columns.isSubset(of: [scope.column]) && tables.isSubset(of: scope.members)
    }

    private func complain(about question: VisibilityQuestion) {
        logger.warning(
            """
            The scope of \(question.table.schema).\(question.table.name) does not hold for the role \(question.role), so \
            each row is judged by itself: its policies read more than the declared column and members tables; run \
            `roost doctor`.
            """)
    }
}

/// What deciding who sees which rows took, since the start.
package struct VisibilityStatistics: Sendable {
    /// Decisions (a row and somebody who may see it) that Postgres was asked for.
    package internal(set) var asked = 0
    /// Decisions that a kept answer stood for.
    package internal(set) var kept = 0
    /// Round trips to Postgres.
    package internal(set) var roundTrips = 0
    /// How long each of them took.
    package internal(set) var time = Histogram.ofLatency

    package init() {}
}
