import Matching
package import Wire

/// Answers of policies, kept for as long as a scope says that they hold.
///
/// They are dropped when a members table changes, those that the change concerns, and the window that brings the change says so
/// before any of its rows is judged. So whoever was removed receives nothing that commits later, and whoever was added receives all of it.
///
/// No answer lives longer than `ScopeAnswers.lifetime`: what a scope cannot promise (a policy that looks at the clock, or
/// at something outside the database) is put right within it.
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

    /// Of a value as it was before a transaction.
    private struct FormerKey: Hashable {
        let key: Key
        let transaction: WriterTransaction
    }

    private var answers: [Key: ScopeAnswers] = [:]
    /// What is answered while rows that a transaction deleted are put back. None of it outlives a change of members.
    private var former: [FormerKey: ScopeAnswers] = [:]
    private static let mostFormer = 1000
    /// When what nobody asked for any more goes: a scope by a column with many values would fill the memory.
    private var sweepAt: ContinuousClock.Instant?
    private var disproved: Set<TableRole> = []

    package init() {}

    /// Values that something is known of.
    package var count: Int { answers.count }

    /// What is known of a scope value; empty at first.
    package mutating func answers(_ table: UInt32, _ value: [UInt8], at now: ContinuousClock.Instant) -> ScopeAnswers {
        let key = Key(table: table, value: value)
        if let known = answers[key] {
            known.advance(to: now)
            return known
        }
        sweep(at: now)
        if answers.count >= Self.capacity { answers.removeAll(keepingCapacity: true) }
        let fresh = ScopeAnswers(at: now)
        answers[key] = fresh
        return fresh
    }

    /// What is known of a scope value as it was before a transaction.
    mutating func answers(
        _ table: UInt32, _ value: [UInt8], before transaction: WriterTransaction, at now: ContinuousClock.Instant
    ) -> ScopeAnswers {
        let key = FormerKey(key: Key(table: table, value: value), transaction: transaction)
        if let known = former[key] {
            known.advance(to: now)
            return known
        }
        if former.count >= Self.mostFormer { former = [:] }
        let fresh = ScopeAnswers(at: now)
        former[key] = fresh
        return fresh
    }

    private mutating func sweep(at now: ContinuousClock.Instant) {
        if let sweepAt, now < sweepAt { return }
        if sweepAt != nil { answers = answers.filter { $0.value.isAlive(at: now) } }
        sweepAt = now + ScopeAnswers.lifetime
    }

    /// Nothing is known any more, neither answers nor which scopes were disproved.
    package mutating func forget() {
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
        for (value, users) in concern.pairs { answers[Key(table: table, value: value)]?.forget(users) }
        guard !concern.users.isEmpty else { return }
        for (key, known) in answers where key.table == table { known.forget(concern.users) }
    }

    // MARK: Scopes that the policies belie

    package func holds(_ table: UInt32, _ role: Name) -> Bool {
        !disproved.contains(TableRole(table: table, role: role))
    }

    /// - Returns: whether that was not known before.
    package mutating func disprove(_ table: UInt32, _ role: Name) -> Bool {
        forgetAnswers(about: table)
        return disproved.insert(TableRole(table: table, role: role)).inserted
    }
}

/// What policies answered about one value of a table's scope column, by who asked.
///
/// Answers end one by one and not together: asking anew for all members of a busy conversation at one moment would hold up
/// everybody's changes once a second.
package final class ScopeAnswers {
    static let lifetime = Duration.seconds(1)

    private struct Answer {
        let isVisible: Bool
        /// The hash of what tells which rows of members tables concern the principal; nil for all.
        let key: Int?
        let end: ContinuousClock.Instant
    }

    private var answers: [Int: Answer] = [:]
    private var pruneAt: ContinuousClock.Instant
    /// The moment that answers are looked up for, and given at.
    private var now: ContinuousClock.Instant

    init(at now: ContinuousClock.Instant) {
        self.now = now
        pruneAt = now + Self.lifetime
    }

    /// Moves on to another batch of questions. What has ended by then is forgotten, and with it whoever is gone.
    func advance(to now: ContinuousClock.Instant) {
        self.now = now
        guard now >= pruneAt else { return }
        answers = answers.filter { $0.value.end > now }
        pruneAt = now + Self.lifetime
    }

    /// Whether an answer may be left at a moment; none is where nothing was looked up here for a lifetime.
    func isAlive(at now: ContinuousClock.Instant) -> Bool { self.now + Self.lifetime > now }

    package subscript(_ principal: Principal) -> Bool? {
        guard let answer = answers[principal.number], answer.end > now else { return nil }
        return answer.isVisible
    }

    /// - Parameter key: what tells which rows of members tables concern the principal; nil for all.
    package func keep(_ isVisible: Bool, for principal: Principal, key: String?) {
        answers[principal.number] = Answer(
            isVisible: isVisible, key: key?.hashValue, end: now + Self.share(of: principal))
    }

    /// Drops the answers of users, by the hashes of their keys, and of those of whom no key is known.
    func forget(_ users: Set<Int>) {
        answers = answers.filter { entry in entry.value.key.map { !users.contains($0) } ?? false }
    }

    /// Between half of the lifetime and all of it, evenly over the principals (multiplicative hashing, Knuth 6.4).
    private static func share(of principal: Principal) -> Duration {
        let spread = UInt32(truncatingIfNeeded: principal.number) &* 2_654_435_769
        return lifetime / 2 * (1 + Double(spread) / 4_294_967_296)
    }
}
