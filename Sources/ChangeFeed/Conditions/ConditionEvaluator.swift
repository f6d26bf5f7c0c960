import Hub
import Logging
import Matching
import Postgres
import Workers

/// Has Postgres answer questions about clients' filters that only Postgres can: do rows meet conditions on collations,
/// regular expressions and types of its own, and what do the values of new filters mean?
///
/// Many questions are asked together; if that takes long or fails, one filter after the other, so that only the filters at
/// fault end and all others are answered. Used by one thread at a time, which waits for it, within `ConditionLimits`.
struct ConditionEvaluator: ~Copyable {
    /// One answer for each condition.
    struct Answers: Sendable {
        var met: [Bool]
        /// The reasons for undecided conditions, by their place, as the end of a sentence that begins with the filter.
        /// These conditions are not met: an undecided change is not delivered.
        var givenUp: [Int: String] = [:]
    }

    private var session: ConditionSession
    private let logger: Logger
    private let limits: ConditionLimits
    private let budget: SharedConditionBudget
    /// True if all filters together are more than Postgres can decide, so that the costliest of those asked apart end.
    private var endsExcess = false
    /// Planning time grows faster than the statement: 1,000 questions take 56 ms, 2,000 take 291.
    private static let questionsPerStatement = 1000
    static let tookTooLong = "took too long to decide"
    private static let endsSession = "ends the session of Postgres"

    init(conninfo: String, limits: ConditionLimits, budget: SharedConditionBudget, logger: Logger) {
        session = ConditionSession(conninfo: conninfo, limits: limits, logger: logger)
        self.limits = limits
        self.logger = logger
        self.budget = budget
    }

    /// Decides conditions. A condition that takes long affects only its own filter: the filter is given up, and the others
    /// are answered.
    ///
    /// - Parameters:
    ///   - isOverdue: true if these wait longer than they should; if their cost is the reason, the costliest end.
    ///   - rows: number of rows that they are about.
    /// - Throws: `PostgresError` if the database does not answer, or a table is locked: then nothing is decided, and the
    ///   same conditions must be asked again.
    mutating func answers(
        to conditions: [PostgresCondition], isOverdue: Bool = false, rows: Int = 1
    ) throws -> Answers {
        var answers = Answers(met: Array(repeating: false, count: conditions.count))
        var together: [Int] = []
        var apart: [ConditionBudget.Key: [Int]] = [:]
        let suspects = budget.withBudget(\.suspectKeys)
        for (place, condition) in conditions.enumerated() {
            let key = ConditionBudget.Key(condition)
            if suspects.contains(key) { apart[key, default: []].append(place) } else { together.append(place) }
        }
        // A filter's question about many rows is planned once.
        if rows > 1, together.count > Self.questionsPerStatement {
            together.sort { (conditions[$0].expression, $0) < (conditions[$1].expression, $1) }
        }
        let began = ContinuousClock.now
        for start in stride(from: 0, to: together.count, by: Self.questionsPerStatement) {
            let places = together[start..<min(start + Self.questionsPerStatement, together.count)]
            if try askTogether(places, conditions, &answers) { continue }
            for place in places { apart[ConditionBudget.Key(conditions[place]), default: []].append(place) }
        }
        let took = ContinuousClock.now - began
        if !apart.isEmpty { try askApart(apart, conditions, &answers) }
        if isOverdue, took / max(1, rows) > limits.eachRow {
            // The next batch asks them apart and finds the costly ones.
            budget.withBudget { $0.suspectAll(together.lazy.map { ConditionBudget.Key(conditions[$0]) }) }
            endsExcess = true
        }
        return answers
    }

    /// Runs the question of a `SubscriptionBinder` about a new filter's values, and returns rows of texts.
    ///
    /// - Throws: the same errors as the session.
    mutating func validateValues(_ statement: String) throws -> [[String?]] { try session.validateValues(statement) }

    // MARK: Together

    /// - Returns: false if they have to be asked apart.
    private mutating func askTogether(
        _ places: ArraySlice<Int>, _ conditions: [PostgresCondition], _ answers: inout Answers
    ) throws -> Bool {
        let asked = places.map { conditions[$0] }
        let began = ContinuousClock.now
        switch try session.askConditions(asked, within: limits.together + limits.perQuestion * asked.count) {
        case .answered(let met):
            for (place, isMet) in zip(places, met) { answers.met[place] = isMet }
            let took = ContinuousClock.now - began
            budget.withBudget {
                $0.tookTogether(asked.lazy.map { ConditionBudget.Key($0) }, questions: asked.count, took, at: .now)
            }
            return true
        case .endedSession:
            // Asked apart from now on, even if the server has crashed and is away for a while.
            budget.withBudget { $0.suspectAll(asked.lazy.map { ConditionBudget.Key($0) }) }
            return false
        case .outOfTime, .failed:
            return false
        }
    }

    // MARK: Apart

    /// Asks about one filter after the other, the cheap ones first, so that the costliest are given up.
    private mutating func askApart(
        _ places: [ConditionBudget.Key: [Int]], _ conditions: [PostgresCondition], _ answers: inout Answers
    ) throws {
        let deadline = ContinuousClock.now + limits.allApart
        let order = budget.withBudget { budget in
            places.sorted { one, other in
                (budget.cost(of: one.key), one.key.expression.utf8.count)
                    < (budget.cost(of: other.key), other.key.expression.utf8.count)
            }
        }
        /// Time per question of each filter.
        var costs: [ConditionBudget.Key: Duration] = [:]
        for (key, places) in order {
            for start in stride(from: 0, to: places.count, by: Self.questionsPerStatement) {
                let some = places[start..<min(start + Self.questionsPerStatement, places.count)]
                guard ContinuousClock.now < deadline else {
                    giveUp(
                        key, places, conditions, .notInTime, "was not decided in time, as filters took too long",
                        &answers)
                    break
                }
                let began = ContinuousClock.now
                let asked = some.map { conditions[$0] }
                switch try session.askConditions(
                    asked, within: limits.apart + limits.perQuestion * asked.count, areApart: true)
                {
                case .answered(let met):
                    for (place, isMet) in zip(some, met) { answers.met[place] = isMet }
                    let took = ContinuousClock.now - began
                    budget.withBudget { $0.tookApart(key, questions: asked.count, took, at: .now) }
                    costs[key] = max(.zero, took - limits.cheap) / asked.count
                    continue
                case .failed(let error) where error.isAboutData && some.count > 1:
                    guard let error = try askEach(some, conditions, until: deadline, &answers) else { continue }
                    giveUp(key, places, conditions, .failed, "cannot be decided: \(error.message)", &answers)
                case .failed(let error) where error.isAboutData:
                    // Written before the column had its type: the value is not one of the type, so it meets no condition.
                    continue
                case .failed(let error):
                    giveUp(key, places, conditions, .failed, "cannot be decided: \(error.message)", &answers)
                case .endedSession:
                    giveUp(key, places, conditions, .failed, "\(Self.endsSession) that decides it", &answers)
                case .outOfTime:
                    // On a busy or stalled server everything takes long, which is no filter's fault.
                    try session.demandQuickAnswer()
                    refuseFilter(key, places, conditions, &answers)
                }
                break
            }
        }
        var costly = Set(budget.withBudget { $0.takeOverdrawn(at: .now) })
        if endsExcess { costly.formUnion(ConditionBudget.excess(of: costs, over: limits.eachRow)) }
        endsExcess = false
        for key in costly {
            // Filters without a question at the moment are found with their next rows.
            guard let places = places[key] else { continue }
            refuseFilter(key, places, conditions, &answers)
        }
    }

    /// Asks about one row after the other, because one of them has an unreadable value.
    ///
    /// - Returns: the reason why the filter cannot be decided; nil if it was.
    private mutating func askEach(
        _ places: ArraySlice<Int>, _ conditions: [PostgresCondition], until deadline: ContinuousClock.Instant,
        _ answers: inout Answers
    ) throws -> PostgresError? {
        for place in places {
            let tooLate = PostgresError(.server, sqlState: SQLState.queryCanceled, "it takes too long")
            guard ContinuousClock.now < deadline else { return tooLate }
            switch try session.askConditions([conditions[place]], within: limits.apart, areApart: true) {
            case .answered(let met): answers.met[place] = met.first ?? false
            case .failed(let error) where error.isAboutData: continue
            case .failed(let error): return error
            case .endedSession: return PostgresError(.server, "it \(Self.endsSession)")
            case .outOfTime: return tooLate
            }
        }
        return nil
    }

    private mutating func refuseFilter(
        _ key: ConditionBudget.Key, _ places: [Int], _ conditions: [PostgresCondition], _ answers: inout Answers
    ) {
        giveUp(key, places, conditions, .tookTooLong, Self.tookTooLong, &answers)
        guard let condition = places.first.map({ conditions[$0] }) else { return }
        budget.withBudget { $0.refuseConditions(condition.sources, on: condition.table.oid, at: .now) }
    }

    private mutating func giveUp(
        _ key: ConditionBudget.Key, _ places: [Int], _ conditions: [PostgresCondition], _ end: FilterEnd,
        _ reason: String, _ answers: inout Answers
    ) {
        budget.countEnds(end)
        budget.withBudget { $0.removeSuspect(key) }
        for place in places {
            answers.met[place] = false
            answers.givenUp[place] = reason
        }
        guard let condition = places.first.map({ conditions[$0] }) else { return }
        logger.warning(
            """
            A filter on \(condition.table.schema).\(condition.table.name) \(reason), and is not served any more: \
            \(ChangeFilter(conditions: condition.sources))
            """)
    }
}

extension PostgresError {
    /// Class 22: a value that its type does not accept.
    fileprivate var isAboutData: Bool { sqlState?.hasPrefix("22") == true }
}
