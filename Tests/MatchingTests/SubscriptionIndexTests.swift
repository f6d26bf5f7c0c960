import Matching
import Testing

@Suite("The index of subscriptions")
struct SubscriptionIndexTests {
    private static let messages = Fixture.table(
        [
            Fixture.column("id", "int8", .decimal, key: true), Fixture.column("room", "uuid", .uuid),
            Fixture.column("n", "int4", .decimal), Fixture.column("body", "text", .text),
        ], name: "messages", oid: 10)
    private static let users = Fixture.table(
        [Fixture.column("id", "int8", .decimal, key: true), Fixture.column("name", "text", .text)], name: "users",
        oid: 11)
    private static let audit = Fixture.table(
        [Fixture.column("id", "int8", .decimal, key: true)], name: "log", oid: 12, schema: "audit")

    private func binding(
        _ id: Int = 1, _ filter: String = "", events: EventSet = .all, select: [String] = [], table: Table = messages
    ) throws -> BoundBinding {
        BoundBinding(id: id, events: events, selection: Selection(select), filter: try Fixture.filter(filter, table))
    }

    private func insert(_ record: String, table: Table = messages) -> RowChange {
        Fixture.change(record, table: table)
    }

    private func groups(_ index: inout SubscriptionIndex, _ change: RowChange) -> [Int] {
        index.match(change).deliveries.map(\.group).sorted()
    }

    @Test func equalitiesAreFoundByValue() throws {
        var index = SubscriptionIndex()
        for n in 0..<100 { index.addBindings([try binding(n + 1, "n=eq.\(n)")], as: n) }
        #expect(groups(&index, insert(#"{"id":1,"n":7}"#)) == [7])
        #expect(groups(&index, insert(#"{"id":1,"n":100}"#)) == [])
        #expect(groups(&index, insert(#"{"id":1,"n":null}"#)) == [])
        #expect(groups(&index, insert(#"{"id":1}"#)) == [])
        #expect(index.match(insert(#"{"id":1,"n":7}"#)).deliveries.first?.ids == [8])
    }

    @Test func theOtherConditionsAreVerified() throws {
        var index = SubscriptionIndex()
        index.addBindings([try binding(1, "n=eq.7,id=gt.5")], as: 1)
        index.addBindings([try binding(1, "body=eq.x,n=in.(7,8,07)")], as: 2)
        #expect(groups(&index, insert(#"{"id":6,"n":7,"body":"x"}"#)) == [1, 2])
        #expect(groups(&index, insert(#"{"id":5,"n":7,"body":"x"}"#)) == [2])
        #expect(groups(&index, insert(#"{"id":6,"n":7,"body":"y"}"#)) == [1])
        #expect(groups(&index, insert(#"{"id":6,"n":8,"body":"x"}"#)) == [2])
    }

    @Test func anEmptyListMatchesNothingAndCanBeRemoved() throws {
        var index = SubscriptionIndex()
        index.addBindings([try binding(1, "n=in.()")], as: 1)
        #expect(index.match(insert(#"{"id":1,"n":7}"#)).isEmpty)
        index.removeGroup(1)
        #expect(index.groupCount == 0)
    }

    @Test func eventsAreKeptApart() throws {
        var index = SubscriptionIndex()
        index.addBindings([try binding(1, "id=eq.1", events: .insert)], as: 1)
        index.addBindings([try binding(1, events: .update)], as: 2)
        index.addBindings([try binding(1, "id=eq.1", events: .delete)], as: 3)
        index.addBindings([try binding(1)], as: 4)
        let row = #"{"id":1}"#
        #expect(groups(&index, insert(row)) == [1, 4])
        #expect(groups(&index, Fixture.change(row, old: row, operation: .update, table: Self.messages)) == [2, 4])
        #expect(groups(&index, Fixture.change(nil, old: row, operation: .delete, table: Self.messages)) == [3, 4])
    }

    @Test func updatesAreTestedOnTheNewRowAndDeletesOnTheOldOne() throws {
        var index = SubscriptionIndex()
        index.addBindings([try binding(1, "n=eq.1")], as: 1)
        index.addBindings([try binding(1, "id=eq.1")], as: 2)
        let (old, new) = (#"{"id":1,"n":1}"#, #"{"id":1,"n":2}"#)
        #expect(groups(&index, Fixture.change(new, old: old, operation: .update, table: Self.messages)) == [2])
        #expect(groups(&index, Fixture.change(old, old: new, operation: .update, table: Self.messages)) == [1, 2])
        #expect(groups(&index, Fixture.change(nil, old: old, operation: .delete, table: Self.messages)) == [1, 2])
        let key = Fixture.change(nil, old: #"{"id":1}"#, operation: .delete, table: Self.messages)
        #expect(groups(&index, key) == [2])
    }

    @Test func aGroupGetsOneDeliveryForEachSelection() throws {
        var index = SubscriptionIndex()
        index.addBindings(
            [
                try binding(3), try binding(2, "n=eq.1"), try binding(5, "n=eq.2"), try binding(4, select: ["body"]),
                try binding(3), try binding(6, "n=gt.0", select: ["body"]),
            ], as: 1)
        let deliveries = index.match(insert(#"{"id":1,"n":1}"#)).deliveries
        #expect(deliveries.count == 2)
        #expect(deliveries.first { $0.selection == nil }?.ids == [2, 3])
        #expect(deliveries.first { $0.selection != nil }?.ids == [4, 6])
    }

    @Test func undecidedBindingsJoinTheirGroupsDelivery() throws {
        var index = SubscriptionIndex()
        index.addBindings([try binding(2, "id=eq.1"), try binding(1, "body=ilike.x%")], as: 1)
        index.addBindings([try binding(9, "body=ilike.x%,n=eq.1")], as: 2)
        index.addBindings([try binding(9, "body=ilike.x%,n=eq.2")], as: 3)
        let matches = index.match(insert(#"{"id":1,"n":1,"body":"X"}"#))
        #expect(matches.undecided.map(\.group).sorted() == [1, 2])
        #expect(matches.conditions.allSatisfy { $0.expression == #"r."body" ilike 'x%'"# })
        let all = matches.resolveUndecided(by: [true, true]).sorted { $0.group < $1.group }
        #expect(all.map(\.group) == [1, 2])
        #expect(all.map(\.ids) == [[1, 2], [9]])
        #expect(matches.resolveUndecided(by: [false, false]).map(\.ids) == [[2]])
    }

    @Test func whoIsUndecidedOrBehindWaitsAsAWhole() throws {
        var index = SubscriptionIndex()
        index.addBindings([try binding(2, "id=eq.1"), try binding(1, "body=ilike.x%")], as: 1)
        index.addBindings([try binding(9, "n=eq.1")], as: 2)
        index.addBindings([try binding(8, "n=eq.1")], as: 3)
        let matches = index.match(insert(#"{"id":1,"n":1,"body":"X"}"#))
        let (now, later) = matches.split { $0 == 3 }
        #expect(now.map(\.group) == [2])
        #expect(later.deliveries.map(\.group).sorted() == [1, 3])
        #expect(later.undecided.map(\.group) == [1])
        #expect(later.resolveUndecided(by: [true]).first { $0.group == 1 }?.ids == [1, 2])
    }

    @Test func removedGroupsAreGone() throws {
        var index = SubscriptionIndex()
        for n in 0..<50 { index.addBindings([try binding(1, n % 2 == 0 ? "n=eq.1" : "")], as: n) }
        for n in stride(from: 0, to: 50, by: 3) { index.removeGroup(n) }
        index.removeGroup(999)
        #expect(groups(&index, insert(#"{"id":1,"n":1}"#)) == (0..<50).filter { $0 % 3 != 0 })
        for n in 0..<50 { index.removeGroup(n) }
        #expect(index.groupCount == 0)
        #expect(index.match(insert(#"{"id":1,"n":1}"#)).isEmpty)
    }

    @Test func addingAgainReplaces() throws {
        var index = SubscriptionIndex()
        index.addBindings([try binding(1, "n=eq.1")], as: 1)
        index.addBindings([try binding(2, "n=eq.2")], as: 1)
        #expect(groups(&index, insert(#"{"id":1,"n":1}"#)) == [])
        #expect(groups(&index, insert(#"{"id":1,"n":2}"#)) == [1])
    }

    // MARK: Wildcards

    @Test func wildcardsFollowTheCatalog() throws {
        var index = SubscriptionIndex()
        _ = index.setTables([Self.messages])
        index.addBindings(
            [BoundBinding(id: 1, events: .all, everyRowOf: TablePattern(schema: "public", name: "*"))], as: 1)
        index.addBindings(
            [BoundBinding(id: 1, events: .insert, everyRowOf: TablePattern(schema: "*", name: "*"))], as: 2)
        #expect(groups(&index, insert(#"{"id":1}"#)) == [1, 2])
        #expect(index.setTables([Self.messages, Self.users, Self.audit]).isEmpty)
        #expect(groups(&index, insert(#"{"id":1}"#, table: Self.users)) == [1, 2])
        #expect(groups(&index, insert(#"{"id":1}"#, table: Self.audit)) == [2])
        index.removeGroup(1)
        #expect(groups(&index, insert(#"{"id":1}"#, table: Self.users)) == [2])
    }

    @Test func aTableThatTheCatalogDoesNotHaveYetIsFoundByItsFirstChange() {
        var index = SubscriptionIndex()
        index.addBindings(
            [BoundBinding(id: 1, events: .all, everyRowOf: TablePattern(schema: "public", name: "*"))], as: 1)
        #expect(groups(&index, insert(#"{"id":1}"#, table: Self.users)) == [1])
        #expect(groups(&index, insert(#"{"id":1}"#, table: Self.audit)) == [])
    }

    @Test func aTableThatMovesToAnotherSchemaLeavesItsWildcard() {
        var index = SubscriptionIndex()
        _ = index.setTables([Self.users])
        index.addBindings(
            [BoundBinding(id: 1, events: .all, everyRowOf: TablePattern(schema: "public", name: "*"))], as: 1)
        let moved = Fixture.table(Self.users.columns, name: "users", oid: 11, schema: "old")
        _ = index.setTables([moved])
        #expect(groups(&index, insert(#"{"id":1}"#, table: moved)) == [])
    }

    @Test func aFilteredWildcardAsksToBeBoundToNewTables() throws {
        var index = SubscriptionIndex()
        _ = index.setTables([Self.messages])
        let pattern = TablePattern(schema: "public", name: "*")
        let one = try Fixture.filter("id=eq.1", Self.messages)
        index.addBindings([BoundBinding(id: 1, events: .all, tables: pattern, filters: [one])], as: 1)
        #expect(groups(&index, insert(#"{"id":1}"#)) == [1])
        #expect(groups(&index, insert(#"{"id":2}"#)) == [])
        #expect(index.setTables([Self.messages, Self.users]) == [1])
        let other = try Fixture.filter("id=eq.1", Self.users)
        index.addBindings([BoundBinding(id: 1, events: .all, tables: pattern, filters: [one, other])], as: 1)
        #expect(index.setTables([Self.messages, Self.users]) == [])
        #expect(groups(&index, insert(#"{"id":1}"#, table: Self.users)) == [1])
    }

    // MARK: Altered tables

    @Test func filtersFollowAnAlteredTableUntilTheyAreBoundAgain() throws {
        var index = SubscriptionIndex()
        _ = index.setTables([Self.messages])
        index.addBindings([try binding(1, "n=eq.7")], as: 1)
        index.addBindings([try binding(1, "id=gt.7")], as: 2)
        index.addBindings([try binding(1, "n=in.(7,8),id=eq.9")], as: 3)
        let moved = Fixture.table(
            [Fixture.column("n", "int4", .decimal), Fixture.column("id", "int8", .decimal, key: true)],
            name: "messages", oid: 10)
        #expect(groups(&index, insert(#"{"n":7,"id":9}"#, table: moved)) == [1, 2, 3])
        #expect(groups(&index, insert(#"{"n":9,"id":7}"#, table: moved)) == [])
        #expect(index.setTables([moved]) == [1, 2, 3])

        // n is text now: Postgres has to decide about everything that was found by its value.
        let retyped = Fixture.table(
            [Fixture.column("id", "int8", .decimal, key: true), Fixture.column("n", "text", .text)], name: "messages",
            oid: 10)
        let matches = index.match(insert(#"{"id":9,"n":"7"}"#, table: retyped))
        #expect(matches.deliveries.map(\.group) == [2])
        #expect(matches.undecided.map(\.group).sorted() == [1, 3])
    }

    @Test func anEqualTableThatIsAnotherObjectIsTheSame() throws {
        var index = SubscriptionIndex()
        _ = index.setTables([Self.messages])
        index.addBindings([try binding(1, "n=eq.7")], as: 1)
        let copy = Fixture.table(Self.messages.columns, name: "messages", oid: 10)
        #expect(index.setTables([copy]) == [])
        #expect(groups(&index, insert(#"{"id":1,"n":7}"#, table: copy)) == [1])
    }

    @Test func anOmittedValueIsRatherDelivered() throws {
        var index = SubscriptionIndex()
        index.addBindings([try binding(1, "body=eq.x")], as: 1)
        index.addBindings([try binding(1, "id=eq.2,body=eq.x")], as: 2)
        let change = Fixture.change(#"{"id":1,"n":7}"#, table: Self.messages, isReduced: true)
        #expect(groups(&index, change) == [1])
    }
}
