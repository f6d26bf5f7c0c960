import Hub
package import Matching
import Postgres
import Synchronization
import Wire

/// Measures which filters use Postgres' time, and chooses the filters to give up when they use too much.
///
/// Filters are evaluated together, which reveals nothing about a single one. Once that takes long, the filters involved are
/// suspects and are evaluated one by one, which measures them: cheap ones are cleared, costly ones share a budget. When
/// they overdraw it, the costliest are given up, half of their total time at once. So the cost of filters is bounded,
/// whichever users and however many tokens they come from, and a cheap filter is given up only if all filters together are
/// more than Postgres can decide.
///
/// Time is passed in.
package struct ConditionBudget {
    /// A filter's conditions on a table, as far as Postgres has to decide them.
    package struct Key: Hashable {
        let table: UInt32
        let expression: Name

        package init(_ condition: PostgresCondition) {
            table = condition.table.oid
            expression = Name(condition.expression)
        }

        package init(table: UInt32, expression: String) {
            self.table = table
            self.expression = Name(expression)
        }
    }

    private struct Account {
        var asks = 0
        /// Seconds per question: a moving average.
        var mean = 0.0
    }

    private struct Refusal {
        let conditions: Set<FilterCondition>
        let until: ContinuousClock.Instant
    }

    /// Limit of remembered refusals; expired ones are dropped first, then all.
    private static let mostRefusals = 10_000
    private let limits: ConditionLimits
    private var suspects: [Key: Account] = [:]
    /// The time until which filters found to be cheap are trusted.
    private var cleared: [Key: ContinuousClock.Instant] = [:]
    private var level = 0.0
    private var drainedAt: ContinuousClock.Instant
    private var refusals: [UInt32: [Refusal]] = [:]
    private var refusalCount = 0

    package init(_ limits: ConditionLimits, at now: ContinuousClock.Instant) {
        self.limits = limits
        drainedAt = now
    }

    package func isSuspect(_ key: Key) -> Bool { suspects[key] != nil }

    /// The known cost of a suspect, in seconds; zero if unknown.
    package func cost(of key: Key) -> Double { suspects[key]?.mean ?? 0 }

    // MARK: Measuring

    /// Records the time of questions that were asked together.
    package mutating func tookTogether(
        _ keys: some Sequence<Key>, questions: Int, _ took: Duration, at now: ContinuousClock.Instant
    ) {
        guard took > limits.suspicious + limits.suspiciousPerQuestion * questions else { return }
        suspectFilters(keys, at: now)
    }

    package mutating func suspectFilters(_ keys: some Sequence<Key>, at now: ContinuousClock.Instant) {
        cleared = cleared.filter { $0.value > now }
        for key in keys where suspects[key] == nil && cleared[key] == nil { suspects[key] = Account() }
    }

    package var suspectKeys: Set<Key> { Set(suspects.keys) }

    /// Suspects all of these filters, even trusted ones, because together they took too long.
    package mutating func suspectAll(_ keys: some Sequence<Key>) {
        cleared = [:]
        for key in keys where suspects[key] == nil { suspects[key] = Account() }
    }

    /// Records the time of one filter's questions.
    package mutating func tookApart(_ key: Key, questions: Int, _ took: Duration, at now: ContinuousClock.Instant) {
        var account = suspects[key] ?? Account()
        let seconds = took / .seconds(1)
        account.asks += 1
        account.mean += (seconds - account.mean) / Double(min(account.asks, 8))
        let allowed = (limits.cheap + limits.cheapPerQuestion * questions) / .seconds(1)
        if account.mean <= allowed {
            suspects[key] = nil
            cleared[key] = now + limits.trust
        } else {
            suspects[key] = account
            drainBudget(at: now)
            level += seconds
        }
    }

    private mutating func drainBudget(at now: ContinuousClock.Instant) {
        level = max(0, level - (now - drainedAt) / .seconds(1) * limits.share)
        drainedAt = now
    }

    /// The filters to give up because the costly ones took more than their budget.
    package mutating func takeOverdrawn(at now: ContinuousClock.Instant) -> [Key] {
        drainBudget(at: now)
        guard level > limits.budget / .seconds(1) else { return [] }
        level = 0
        let costly = suspects.filter { $0.value.asks > 0 }.sorted { $0.value.mean > $1.value.mean }
        var excess = costly.reduce(0) { $0 + $1.value.mean } / 2
        var chosen: [Key] = []
        for (key, account) in costly where excess > 0 {
            excess -= account.mean
            chosen.append(key)
            suspects[key] = nil
        }
        return chosen
    }

    /// The excess filters when all together are more than Postgres can decide: the costliest, until the others take no more
    /// than `allowed` per row in total.
    package static func excess(of costs: [Key: Duration], over allowed: Duration) -> [Key] {
        var sum = costs.values.reduce(.zero, +)
        return costs.sorted { ($0.value, $0.key.expression) > ($1.value, $1.key.expression) }.prefix { cost in
            defer { sum -= cost.value }
            return sum > allowed
        }.map(\.key)
    }

    package mutating func removeSuspect(_ key: Key) { suspects[key] = nil }

    // MARK: Refusing

    /// Refuses conditions for a while, because they were given up for their cost.
    package mutating func refuseConditions(
        _ conditions: [FilterCondition], on table: UInt32, at now: ContinuousClock.Instant
    ) {
        if refusalCount >= Self.mostRefusals {
            refusals = refusals.compactMapValues { list in
                let kept = list.filter { $0.until > now }
                return kept.isEmpty ? nil : kept
            }
            refusalCount = refusals.values.reduce(0) { $0 + $1.count }
            if refusalCount >= Self.mostRefusals { (refusals, refusalCount) = ([:], 0) }
        }
        refusals[table, default: []].append(Refusal(conditions: Set(conditions), until: now + limits.refusal))
        refusalCount += 1
    }

    /// True if a filter includes refused conditions.
    package func refusesFilter(_ filter: ChangeFilter, on table: UInt32, at now: ContinuousClock.Instant) -> Bool {
        guard let list = refusals[table] else { return false }
        let conditions = Set(filter.conditions)
        return list.contains { $0.until > now && $0.conditions.isSubset(of: conditions) }
    }
}

/// The reason why a filter was given up.
package enum FilterEnd: String, Sendable, CaseIterable {
    /// The filter, or all filters together, took too long.
    case tookTooLong = "took_too_long"
    /// The time for all was over before its turn.
    case notInTime = "not_in_time"
    /// The comparison failed.
    case failed
    /// There were more filters than Postgres may decide for one row, or than it could keep up with.
    case tooMany = "too_many"
}

/// The cost of filters, shared by all callers that evaluate them. From any thread.
final class SharedConditionBudget: Sendable {
    private let content: Mutex<ConditionBudget>
    private let ended = Mutex<[FilterEnd: Int]>([:])

    /// Number of filters given up, by reason.
    var ends: [FilterEnd: Int] { ended.withLock { $0 } }

    func countEnds(_ end: FilterEnd, _ filters: Int = 1) { ended.withLock { $0[end, default: 0] += filters } }

    init(_ limits: ConditionLimits) { content = Mutex(ConditionBudget(limits, at: .now)) }

    func withBudget<Result: Sendable>(_ body: (inout ConditionBudget) -> Result) -> Result {
        content.withLock { body(&$0) }
    }
}

/// Time limits of clients' filters in Postgres. Only the changes of their own subscriptions wait for them.
///
/// The server ends a statement at the time given here (`statement_timeout`); the hub waits for `network` beyond that before
/// it cancels the statement and drops the session.
package struct ConditionLimits: Sendable {
    /// Limit of filters that Postgres decides for one row; the excess ends, starting with the group that has most.
    package var mostForRow = 1000
    /// Limit of questions asked together, and the addition for each: 1,000 take 56 ms if none is costly.
    package var together = Duration.seconds(1)
    package var perQuestion = Duration.milliseconds(1)
    /// Limit of one filter's questions, asked apart because it is unknown which of many takes long.
    package var apart = Duration.milliseconds(250)
    /// Limit of everything asked apart in one batch; filters that are not reached are given up.
    package var allApart = Duration.seconds(3)
    /// Limit for a new subscription's filter, whose values Postgres reads.
    package var validation = Duration.seconds(1)
    /// Additional time for connecting and the network.
    package var network = Duration.seconds(2)
    /// Time for which filters that wait for a lock are tried again before they count as taking too long.
    package var locks = Duration.seconds(10)

    /// Questions asked together that take longer than this are then asked apart, to find the costly ones.
    package var suspicious = Duration.milliseconds(10)
    package var suspiciousPerQuestion = Duration.microseconds(100)
    /// A filter is cheap if it takes no more than this for a batch's rows.
    package var cheap = Duration.milliseconds(1)
    package var cheapPerQuestion = Duration.microseconds(50)
    /// Time that a filter found to be cheap is not suspected again.
    package var trust = Duration.seconds(2)
    /// Time of Postgres that all costly filters together may use at once, and the share of time in the long run.
    package var budget = Duration.milliseconds(500)
    package var share = 0.1
    /// Limit per row for all filters together when they are more than Postgres can decide.
    package var eachRow = Duration.milliseconds(1)
    /// Time that a filter which was given up for its cost is refused when it comes again.
    package var refusal = Duration.seconds(600)

    package init() {}
}
