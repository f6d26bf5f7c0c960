import Matching
import TestSupport
import Testing

@Suite("Properties of the index")
struct SubscriptionIndexPropertyTests {
    private static let table = Fixture.table(
        [
            Fixture.column("id", "int8", .decimal, key: true), Fixture.column("n", "int4", .decimal, identity: true),
            Fixture.column("body", "text", .text),
        ], name: "t", oid: 10)

    private static let filters = [
        "", "n=eq.1", "n=eq.2", "n=in.(1,2,3)", "n=in.(2,null)", "n=gt.2", "n=not.eq.1", "n=is.null", "body=eq.a",
        "body=eq.b,n=eq.1",
        "body=in.(a,b),n=in.(1,2)", "body=like.a%", "n=eq.1,n=eq.2", "body=ilike.A", "body=ilike.A,n=eq.1", "n=in.()",
        "id=eq.1",
    ]

    /// The index finds what evaluating every binding finds, while groups come and go.
    @Test func theIndexFindsWhatEveryFilterSays() throws {
        var random = SeededGenerator(seed: 11)
        let bound = try Self.filters.map { try Fixture.filter($0, Self.table) }
        var index = SubscriptionIndex()
        var model: [Int: [(id: Int, events: EventSet, selection: Selection?, filter: BoundFilter)]] = [:]
        var undecided = 0
        var leftOut = 0
        for _ in 0..<3_000 {
            let group = Int.random(in: 0..<40, using: &random)
            switch Int.random(in: 0..<4, using: &random) {
            case 0:
                index.removeGroup(group)
                model[group] = nil
            case 1:
                let bindings = (0..<Int.random(in: 1...4, using: &random)).map { _ in
                    (
                        id: Int.random(in: 1...5, using: &random),
                        events: EventSet(rawValue: UInt8.random(in: 1...7, using: &random)),
                        selection: Bool.random(using: &random) ? Selection(["body"]) : nil,
                        filter: bound.randomElement(using: &random) ?? BoundFilter(everyRowOf: Self.table)
                    )
                }
                index.addBindings(
                    bindings.map {
                        BoundBinding(id: $0.id, events: $0.events, selection: $0.selection, filter: $0.filter)
                    },
                    as: group)
                model[group] = bindings
            default:
                let change = self.change(&random)
                var expected: Set<String> = []
                var questions: Set<String> = []
                for (group, bindings) in model {
                    for binding in bindings where binding.events.contains(EventSet(change.operation)) {
                        var record = RowRecord(change)
                        let mark = "\(group) \(binding.selection == nil) \(binding.id)"
                        switch binding.filter.evaluate(&record) {
                        case .match: expected.insert(mark)
                        case .noMatch: break
                        case .unknown: questions.insert(mark)
                        }
                    }
                }
                let matches = index.match(change)
                let found = matches.deliveries.flatMap { one in
                    one.ids.map { "\(one.group) \(one.selection == nil) \($0)" }
                }
                #expect(Set(found) == expected)
                #expect(found.count == expected.count)
                #expect(Set(matches.undecided.map { "\($0.group) \($0.selection == nil) \($0.id)" }) == questions)
                undecided += questions.count
                for group in Set(model.keys).shuffled(using: &random).prefix(3) {
                    let isConcerned = (Set(found).union(questions)).contains { $0.hasPrefix("\(group) ") }
                    if Self.concerns(change, index.prefilter(of: [group], mostTexts: 3)) { continue }
                    leftOut += 1
                    #expect(!isConcerned)
                }
            }
        }
        #expect(undecided > 100)
        #expect(leftOut > 100)
    }

    private static func concerns(_ change: RowChange, _ prefilter: RowPrefilter?) -> Bool {
        guard let prefilter else { return true }
        switch prefilter.tables[change.table.oid] {
        case nil: return false
        case .all: return true
        case .holding(let texts):
            let row = String(decoding: change.record ?? change.oldRecord ?? [], as: UTF8.self)
            return texts.contains { row.contains($0.text) }
        }
    }

    private func change(_ random: inout SeededGenerator) -> RowChange {
        let n = ["1", "2", "3", "4", "null"].randomElement(using: &random) ?? "1"
        let body = [#""a""#, #""b""#, #""abc""#, "null"].randomElement(using: &random) ?? "null"
        let row = #"{"id":\#(Int.random(in: 1...2, using: &random)),"n":\#(n),"body":\#(body)}"#
        return switch Int.random(in: 0..<3, using: &random) {
        case 0: Fixture.change(row, table: Self.table)
        case 1: Fixture.change(row, old: row, operation: .update, table: Self.table)
        default: Fixture.change(nil, old: row, operation: .delete, table: Self.table)
        }
    }
}
