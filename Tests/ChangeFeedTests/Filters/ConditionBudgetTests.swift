import ChangeFeed
import Hub
import Matching
import Testing

@testable import PostgresFixtures

/// Whose filters are given up when they take too long together; times are passed in.
@Suite struct ConditionBudgetTests {
    private let start = ContinuousClock.now
    private let limits = ConditionLimits()

    private static func keys(_ range: Range<Int>) -> [ConditionBudget.Key] {
        range.map { ConditionBudget.Key(table: 1, expression: "c \($0)") }
    }

    @Test func quickBatchesMakeNobodySuspect() {
        var budget = ConditionBudget(limits, at: start)
        let keys = Self.keys(0..<1000)
        budget.tookTogether(keys, questions: 1000, .milliseconds(100), at: start)
        #expect(!keys.contains { budget.isSuspect($0) })
        budget.tookTogether(keys, questions: 1000, .milliseconds(300), at: start)
        #expect(keys.allSatisfy { budget.isSuspect($0) })
    }

    /// A thousand innocents beside one culprit: measured once, they are asked together again, and the culprit alone goes.
    @Test func theInnocentAreCleared() {
        var budget = ConditionBudget(limits, at: start)
        let keys = Self.keys(0..<1000)
        budget.tookTogether(keys, questions: 1000, .seconds(1), at: start)
        var gone: [ConditionBudget.Key] = []
        for round in 0..<20 {
            let now = start + .milliseconds(100 * round)
            for (place, key) in keys.enumerated() where budget.isSuspect(key) {
                budget.tookApart(
                    key, questions: 1, place == 7 ? .milliseconds(100) : .microseconds(400), at: now)
            }
            if round == 0 { #expect(keys.count { budget.isSuspect($0) } == 1) }
            gone += budget.takeOverdrawn(at: now)
            if gone.isEmpty { continue }
            break
        }
        #expect(gone == [keys[7]])
    }

    /// What costly filters may take in all, for as long as they like: the budget, and its share of the time.
    @Test(arguments: [1, 10, 100, 1000]) func whateverTheirNumberTheirTimeIsBounded(count: Int) {
        var budget = ConditionBudget(limits, at: start)
        var left = Self.keys(0..<count)
        var now = start
        var spent = Duration.zero
        budget.suspectFilters(left, at: start)
        for _ in 0..<1000 where !left.isEmpty {
            let cost = Duration.milliseconds(5)
            for key in left where budget.isSuspect(key) {
                spent += cost
                now = now + cost
                budget.tookApart(key, questions: 1, cost, at: now)
            }
            let gone = Set(budget.takeOverdrawn(at: now))
            left.removeAll { gone.contains($0) }
            now = now + .milliseconds(20)
        }
        let passed = now - start
        // Each time that half of them go, they had used the budget, and in their last round as much as all of them cost.
        #expect(spent < .seconds(12) + passed * 0.2, "\(spent) in \(passed)")
    }

    @Test func theCostliestGoFirst() {
        var budget = ConditionBudget(limits, at: start)
        let keys = Self.keys(0..<4)
        for key in keys { budget.suspectFilters([key], at: start) }
        for (key, milliseconds) in zip(keys, [10, 500, 20, 100]) {
            budget.tookApart(key, questions: 1, .milliseconds(milliseconds), at: start)
        }
        #expect(budget.takeOverdrawn(at: start) == [keys[1]])
        #expect(budget.takeOverdrawn(at: start) == [])
        #expect(budget.isSuspect(keys[3]) && !budget.isSuspect(keys[1]))
    }

    @Test func withinTheirShareNobodyGoes() {
        var budget = ConditionBudget(limits, at: start)
        let keys = Self.keys(0..<1)
        budget.suspectFilters(keys, at: start)
        for second in 0..<100 {
            budget.tookApart(keys[0], questions: 1, .milliseconds(90), at: start + .seconds(second))
            #expect(budget.takeOverdrawn(at: start + .seconds(second)) == [])
        }
    }

    @Test func theBudgetIsWhatTheLimitsSay() {
        for (milliseconds, isOver) in [(500, false), (501, true)] {
            var budget = ConditionBudget(limits, at: start)
            let keys = Self.keys(0..<1)
            budget.tookApart(keys[0], questions: 1, .milliseconds(milliseconds), at: start)
            #expect(budget.takeOverdrawn(at: start) == (isOver ? keys : []), "\(milliseconds)")
        }
    }

    @Test func whoWasFoundCheapIsTrustedForAWhile() {
        var budget = ConditionBudget(limits, at: start)
        let keys = Self.keys(0..<1)
        budget.tookApart(keys[0], questions: 1, .microseconds(400), at: start)
        budget.suspectFilters(keys, at: start + limits.trust - .milliseconds(1))
        #expect(!budget.isSuspect(keys[0]))
        budget.suspectFilters(keys, at: start + limits.trust)
        #expect(budget.isSuspect(keys[0]))
    }

    @Test func whatAFilterCostsIsAnAverage() {
        var budget = ConditionBudget(limits, at: start)
        let keys = Self.keys(0..<1)
        for milliseconds in [100, 0, 0, 20] {
            budget.tookApart(keys[0], questions: 1, .milliseconds(milliseconds), at: start)
            #expect(budget.isSuspect(keys[0]), "one quick answer does not clear it")
        }
        #expect(abs(budget.cost(of: keys[0]) - 0.030) < 0.000_001)
    }

    @Test func refusalsTakeBoundedMemory() throws {
        var budget = ConditionBudget(limits, at: start)
        let first = try ChangeFilter(parsing: "t=match.first")
        budget.refuseConditions(first.conditions, on: 7, at: start)
        for number in 0..<9_999 { budget.refuseConditions(first.conditions, on: UInt32(100 + number), at: start) }
        #expect(budget.refusesFilter(first, on: 7, at: start))
        budget.refuseConditions(first.conditions, on: 8, at: start)
        #expect(!budget.refusesFilter(first, on: 7, at: start) && budget.refusesFilter(first, on: 8, at: start))
    }

    /// More than Postgres can decide: the costliest go, as many as it takes.
    @Test func theExcessIsOfTheCostliest() {
        let keys = Self.keys(0..<5)
        let costs = Dictionary(
            uniqueKeysWithValues: zip(keys, [10, 900, 20, 400, 30].map { Duration.microseconds($0) }))
        #expect(ConditionBudget.excess(of: costs, over: .milliseconds(2)) == [])
        #expect(ConditionBudget.excess(of: costs, over: .milliseconds(1)) == [keys[1]])
        #expect(ConditionBudget.excess(of: costs, over: .microseconds(60)) == [keys[1], keys[3]])
    }

    /// Beside other conditions, too: a filter is not saved by one more.
    @Test func whatWasGivenUpIsRefusedForAWhile() throws {
        var budget = ConditionBudget(limits, at: start)
        let slow = try ChangeFilter(parsing: "t=match.x")
        budget.refuseConditions(slow.conditions, on: 7, at: start)
        #expect(budget.refusesFilter(slow, on: 7, at: start))
        #expect(budget.refusesFilter(try ChangeFilter(parsing: "id=eq.1,t=match.x"), on: 7, at: start))
        #expect(!budget.refusesFilter(try ChangeFilter(parsing: "t=match.y"), on: 7, at: start))
        #expect(!budget.refusesFilter(slow, on: 8, at: start))
        #expect(!budget.refusesFilter(slow, on: 7, at: start + limits.refusal))
        for number in 0..<20_000 {
            budget.refuseConditions(try ChangeFilter(parsing: "t=match.\(number)").conditions, on: 7, at: start)
        }
        #expect(budget.refusesFilter(try ChangeFilter(parsing: "t=match.19999"), on: 7, at: start))
    }
}
