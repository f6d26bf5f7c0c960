import Matching
package import Wire

/// Answers of policies, kept for as long as a scope guarantees them.
///
/// When a members table changes, the answers that the change concerns are dropped; the window that brings the change
/// reports it before any of its rows is judged. So a removed user receives nothing that commits later, and an added one
/// receives everything.
///
/// No answer lives longer than `ScopeAnswers.lifetime`: within that time, whatever a scope cannot promise (a policy that
/// reads the clock, or something outside the database) is corrected.
package struct ScopeCache: ~Copyable {
    private static let capacity = 100_000

    private struct Key: Hashable {
        let table: UInt32
        let value: [UInt8]
    }

    private struct TableRole: Hashable {
        let table: UInt32
        let role: Name
    }

    /// A value's key as of before a transaction.
    private struct FormerKey: Hashable {
        let key: Key
        let transaction: WriterTransaction
    }

    private var answers: [Key: ScopeAnswers] = [:]
    /// Answers given while rows that a transaction deleted are put back. None of them outlives a change of members.
    private var former: [FormerKey: ScopeAnswers] = [:]
    private static let mostFormer = 1000
    /// When unused answers are removed next: a scope on a column with many values would fill the memory.
    private var sweepAt: ContinuousClock.Instant?
    private var disproved: Set<TableRole> = []

    package init() {}

    /// Number of values with known answers.
    package var count: Int { answers.count }

    /// The known answers for a scope value; empty at first.
    package mutating func findAnswers(_ table: UInt32, _ value: [UInt8], at now: ContinuousClock.Instant)
        -> ScopeAnswers
    {
        let key = Key(table: table, value: value)
        if let known = answers[key] {
            known.advanceTime(to: now)
            return known
        }
        sweepUnused(at: now)
        if answers.count >= Self.capacity { answers.removeAll(keepingCapacity: true) }
        let fresh = ScopeAnswers(at: now)
        answers[key] = fresh
        return fresh
    }

    /// The known answers for a scope value as of before a transaction.
    mutating func findAnswers(
        _ table: UInt32, _ value: [UInt8], before transaction: WriterTransaction, at now: ContinuousClock.Instant
    ) -> ScopeAnswers {
        let key = FormerKey(key: Key(table: table, value: value), transaction: transaction)
        if let known = former[key] {
            known.advanceTime(to: now)
            return known
        }
        if former.count >= Self.mostFormer { former = [:] }
        let fresh = ScopeAnswers(at: now)
        former[key] = fresh
        return fresh
    }

    private mutating func sweepUnused(at now: ContinuousClock.Instant) {
        if let sweepAt, now < sweepAt { return }
        if sweepAt != nil { answers = answers.filter { $0.value.isAlive(at: now) } }
        sweepAt = now + ScopeAnswers.lifetime
    }

    /// Forgets everything: answers, and which scopes were disproved.
    package mutating func forgetAll() {
        answers.removeAll(keepingCapacity: true)
        former = [:]
        disproved = []
    }

    package mutating func forgetAnswers(about table: UInt32) {
        former = [:]
        answers = answers.filter { $0.key.table != table }
    }

    package mutating func forgetAnswers(about table: UInt32, _ concern: MemberConcern) {
        if concern.isEverybody { return forgetAnswers(about: table) }
        former = [:]
        for value in concern.values { answers[Key(table: table, value: value)] = nil }
        for (value, users) in concern.pairs { answers[Key(table: table, value: value)]?.dropUsers(users) }
        guard !concern.users.isEmpty else { return }
        for (key, known) in answers where key.table == table { known.dropUsers(concern.users) }
    }

    // MARK: Disproved scopes

    package func scopeHolds(_ table: UInt32, _ role: Name) -> Bool {
        !disproved.contains(TableRole(table: table, role: role))
    }

    /// - Returns: true if that was not known before.
    package mutating func disproveScope(_ table: UInt32, _ role: Name) -> Bool {
        forgetAnswers(about: table)
        return disproved.insert(TableRole(table: table, role: role)).inserted
    }
}

/// The policies' answers about one value of a table's scope column, by principal.
///
/// Answers expire one by one and not together: asking again for all members of a busy conversation at one moment would
/// delay every client's changes once a second.
package final class ScopeAnswers {
    static let lifetime = Duration.seconds(1)

    private struct Answer {
        let isVisible: Bool
        /// Hash of the user key, which selects the rows of members tables that concern the principal; nil if all may.
        let key: Int?
        let end: ContinuousClock.Instant
    }

    private var answers: [Int: Answer] = [:]
    private var pruneAt: ContinuousClock.Instant
    /// The time of the current look-ups and answers.
    private var now: ContinuousClock.Instant

    init(at now: ContinuousClock.Instant) {
        self.now = now
        pruneAt = now + Self.lifetime
    }

    /// Moves on to another batch of questions. Expired answers are removed, and with them principals that are gone.
    func advanceTime(to now: ContinuousClock.Instant) {
        self.now = now
        guard now >= pruneAt else { return }
        answers = answers.filter { $0.value.end > now }
        pruneAt = now + Self.lifetime
    }

    /// True if an answer may be left at a moment; there is none after a lifetime without a look-up.
    func isAlive(at now: ContinuousClock.Instant) -> Bool { self.now + Self.lifetime > now }

    package subscript(_ principal: Principal) -> Bool? {
        guard let answer = answers[principal.number], answer.end > now else { return nil }
        return answer.isVisible
    }

    /// - Parameter key: the user key, which selects the rows of members tables that concern the principal; nil if all may.
    package func storeAnswer(_ isVisible: Bool, for principal: Principal, key: String?) {
        answers[principal.number] = Answer(
            isVisible: isVisible, key: key?.hashValue, end: now + Self.lifetimeShare(of: principal))
    }

    /// Drops the answers of users, by the hashes of their keys, and those without a known key.
    func dropUsers(_ users: Set<Int>) {
        answers = answers.filter { entry in entry.value.key.map { !users.contains($0) } ?? false }
    }

    /// Between half of the lifetime and all of it, evenly distributed over the principals (multiplicative hashing, Knuth
    /// 6.4).
    private static func lifetimeShare(of principal: Principal) -> Duration {
        let spread = UInt32(truncatingIfNeeded: principal.number) &* 2_654_435_769
        return lifetime / 2 * (1 + Double(spread) / 4_294_967_296)
    }
}
