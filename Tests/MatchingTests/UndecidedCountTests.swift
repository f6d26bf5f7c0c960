import Matching
import Testing

@Suite("Whose filters are too many")
struct UndecidedCountTests {
    private static let table = Fixture.table(
        [Fixture.column("id", "int8", .decimal, key: true), Fixture.column("body", "text", .text)], name: "messages",
        oid: 10)

    /// Groups with so many patterns each, by number; `row` as Postgres may decide it.
    private func tally(_ patterns: [Int: Int], rows: Int = 1, table: Table = table) throws -> UndecidedCount {
        var index = SubscriptionIndex()
        for (group, count) in patterns {
            index.addBindings(
                try (0..<count).map {
                    BoundBinding(
                        id: $0 + 1, events: .all, selection: nil,
                        filter: try Fixture.filter("body=ilike.\(group) \($0)%", Self.table))
                }, as: group)
        }
        var tally = UndecidedCount()
        for row in 0..<rows {
            tally.countUndecided(index.match(Fixture.change(#"{"id":\#(row),"body":"x"}"#, table: table)))
        }
        return tally
    }

    @Test func theMostNumerousAreTheFirst() throws {
        let tally = try tally([1: 2, 2: 9, 3: 1, 4: 5])
        #expect(tally.excess(over: 17) { _ in 1 } == [:])
        #expect(tally.excess(over: 16) { _ in 1 } == [2: Set(1...9)])
        #expect(tally.excess(over: 8) { _ in 1 } == [2: Set(1...9)])
        #expect(tally.excess(over: 7) { _ in 1 } == [2: Set(1...9), 4: Set(1...5)])
        #expect(tally.excess(over: 0) { _ in 1 }.count == 4)
    }

    @Test func whatManyShareIsLittleForEach() throws {
        let tally = try tally([1: 9, 2: 4])
        #expect(Set(tally.excess(over: 9) { $0 == 1 ? 10 : 1 }.keys) == [2])
    }

    @Test func amongEqualsTheNewestEnd() throws {
        let tally = try tally([5: 3, 9: 3, 7: 3])
        #expect(Set(tally.excess(over: 6) { _ in 1 }.keys) == [9])
    }

    @Test func everyRowCounts() throws {
        let tally = try tally([1: 2, 2: 1], rows: 100)
        #expect(tally.excess(over: 100) { _ in 1 } == [1: [1, 2]])
    }

    /// Filters are undecided for a moment where their table was altered: nobody loses one by that.
    @Test func whatIsBoundAgainInAMomentDoesNotCount() throws {
        let altered = Fixture.table(
            [Fixture.column("id", "int8", .decimal, key: true), Fixture.column("body", "varchar", .text)],
            name: "messages", oid: 10)
        #expect(try tally([1: 5], table: altered).excess(over: 0) { _ in 1 } == [:])
        #expect(try tally([1: 5]).excess(over: 0) { _ in 1 } == [1: Set(1...5)])
    }
}
