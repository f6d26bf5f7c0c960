import Hub
package import Matching
import Postgres
import Synchronization
import Wire

/// Whose filters take Postgres' time, and who is to be given up where it is too much.
///
/// Filters are asked together, which tells nothing of each. Once that takes long, those that took part are suspected and
/// asked one by one, which measures them; the cheap ones are cleared by that, the costly ones share a budget. When they
/// overdraw it, the costliest are given up, half of their time at once. So what filters can cost everybody is bounded
/// whoever asks for them and however many tokens they use, and a filter that is cheap is given up only where all of them
/// together are more than Postgres can decide.
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
        /// Of one ask, in seconds: a moving average.
        var mean = 0.0
    }

    private struct Refusal {
        let conditions: Set<FilterCondition>
        let until: ContinuousClock.Instant
    }

    /// More are forgotten, the oldest first.
    private static let mostRefusals = 10_000
    private let limits: ConditionLimits
    private var suspects: [Key: Account] = [:]
    /// Until when those that were found to be cheap are trusted.
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

    /// What is known of a suspect's cost, in seconds; none of it is zero.
    package func cost(of key: Key) -> Double { suspects[key]?.mean ?? 0 }

    // MARK: Measuring

    /// Questions that were asked together took so long.
    package mutating func tookTogether(
        _ keys: some Sequence<Key>, questions: Int, _ took: Duration, at now: ContinuousClock.Instant
    ) {
        guard took > limits.suspicious + limits.suspiciousPerQuestion * questions else { return }
        suspect(keys, at: now)
    }

    package mutating func suspect(_ keys: some Sequence<Key>, at now: ContinuousClock.Instant) {
        cleared = cleared.filter { $0.value > now }
        for key in keys where suspects[key] == nil && cleared[key] == nil { suspects[key] = Account() }
    }

    package var suspectKeys: Set<Key> { Set(suspects.keys) }

    /// All of them took too long together, those that are trusted, too.
    package mutating func suspectAll(_ keys: some Sequence<Key>) {
        cleared = [:]
        for key in keys where suspects[key] == nil { suspects[key] = Account() }
    }

    /// The questions of one filter took so long.
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
            drain(at: now)
            level += seconds
        }
    }

    private mutating func drain(at now: ContinuousClock.Instant) {
        level = max(0, level - (now - drainedAt) / .seconds(1) * limits.share)
        drainedAt = now
    }

    /// Who is to be given up, as the costly ones took more than they may.
    package mutating func overdrawn(at now: ContinuousClock.Instant) -> [Key] {
        drain(at: now)
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

    /// Which filters are too many where they are more than Postgres can decide: the costliest, until the others take no more
    /// than `allowed` for a row, all together.
    package static func excess(of costs: [Key: Duration], over allowed: Duration) -> [Key] {
        var sum = costs.values.reduce(.zero, +)
        return costs.sorted { ($0.value, $0.key.expression) > ($1.value, $1.key.expression) }.prefix { cost in
            defer { sum -= cost.value }
            return sum > allowed
        }.map(\.key)
    }

    package mutating func forget(_ key: Key) { suspects[key] = nil }

    // MARK: Refusing

    /// Has conditions refused for a while: they were given up because of what they cost.
    package mutating func refuse(_ conditions: [FilterCondition], on table: UInt32, at now: ContinuousClock.Instant) {
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

    /// Whether a filter has conditions that are refused.
    package func refuses(_ filter: ChangeFilter, on table: UInt32, at now: ContinuousClock.Instant) -> Bool {
        guard let list = refusals[table] else { return false }
        let conditions = Set(filter.conditions)
        return list.contains { $0.until > now && $0.conditions.isSubset(of: conditions) }
    }
}

/// Why filters were given up.
package enum FilterEnd: String, Sendable, CaseIterable {
    /// It, or all of them together.
    case tookTooLong = "took_too_long"
    /// It was not its turn before the time of all was over.
    case notInTime = "not_in_time"
    /// The comparison failed.
    case failed
    /// There were more than Postgres may have to decide for a row, or than it could keep up with.
    case tooMany = "too_many"
}

/// What filters have cost, for all that ask about them. From any thread.
final class SharedConditionBudget: Sendable {
    private let content: Mutex<ConditionBudget>
    private let ended = Mutex<[FilterEnd: Int]>([:])

    /// How many filters were given up, by the reason.
    var ends: [FilterEnd: Int] { ended.withLock { $0 } }

    func count(_ end: FilterEnd, _ filters: Int = 1) { ended.withLock { $0[end, default: 0] += filters } }

    init(_ limits: ConditionLimits) { content = Mutex(ConditionBudget(limits, at: .now)) }

    func use<Result: Sendable>(_ body: (inout ConditionBudget) -> Result) -> Result { content.withLock { body(&$0) } }
}

/// How long clients' filters may take in Postgres. The changes of their own subscriptions wait for them, and no others.
///
/// The server ends a statement at the time given here (`statement_timeout`); the hub waits for `network` beyond that before
/// it cancels the statement and drops the session.
package struct ConditionLimits: Sendable {
    /// How many filters Postgres may have to decide for one row; more end, those of whom has the most.
    package var mostForRow = 1000
    /// Questions that are asked together, and what each of them adds: 1,000 take 56 ms where none is costly.
    package var together = Duration.seconds(1)
    package var perQuestion = Duration.milliseconds(1)
    /// The questions of one filter, asked apart, where it is not known which of many takes long.
    package var apart = Duration.milliseconds(250)
    /// All that are asked apart in one batch; filters that are not reached are given up.
    package var allApart = Duration.seconds(3)
    /// A filter of a new subscription, whose values Postgres reads.
    package var validation = Duration.seconds(1)
    /// What connecting and the network may take on top.
    package var network = Duration.seconds(2)
    /// How long filters that wait for a lock are asked again, before they count as taking too long.
    package var locks = Duration.seconds(10)

    /// Questions asked together that take longer than this are asked apart from then on, to find whose time it is.
    package var suspicious = Duration.milliseconds(10)
    package var suspiciousPerQuestion = Duration.microseconds(100)
    /// A filter is cheap that takes no more than this for a batch's rows.
    package var cheap = Duration.milliseconds(1)
    package var cheapPerQuestion = Duration.microseconds(50)
    /// How long a filter that was found to be cheap is not suspected again.
    package var trust = Duration.seconds(2)
    /// Time of Postgres' that costly filters may use at once, all together, and for how much of the time.
    package var budget = Duration.milliseconds(500)
    package var share = 0.1
    /// What all filters may take for a row where they are more than Postgres can decide.
    package var eachRow = Duration.milliseconds(1)
    /// How long a filter that was given up because of its cost is refused when it comes again.
    package var refusal = Duration.seconds(600)

    package init() {}
}
