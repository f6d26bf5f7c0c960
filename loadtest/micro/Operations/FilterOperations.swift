import Hub
import Matching

/// Finding the subscriptions that a change matches. What is found by value costs the same however many there are; the rest
/// is looked at one by one.
enum FilterOperations {
    static var all: [Operation] {
        [
            match("eq/10", 10, countedRuns: 1600) { conversation($0) },
            match("eq/1000", 1000, countedRuns: 1600) { conversation($0) },
            match("eq/100000", 100_000, countedRuns: 1600) { conversation($0) },
            match("in/1000", 1000) {
                "conversation_id=in.(\(ChatTable.conversation($0)),\(ChatTable.conversation($0 + 2000)))"
            },
            match("eq_and_gt/1000", 1000) { conversation($0) + ",seq=gt.100" },
            // All but one of them match.
            match("neq/1000", 1000, countedRuns: 64) { "conversation_id=neq.\(ChatTable.conversation($0))" },
            // Half of them match.
            match("gt/1000", 1000, countedRuns: 64) { "seq=gt.\($0)" },
            // From here on none matches: this is what looking at them costs.
            match("gt_none/1000", 1000, countedRuns: 64) { "seq=gt.\($0 + 500)" },
            match("lt_time/1000", 1000, countedRuns: 64) { "created_at=lt.2020-01-01T00:00:\(10 + $0 % 50)Z" },
            match("not_in/1000", 1000, countedRuns: 64) { "seq=not.in.(500,\($0 + 1000))" },
            match("like_prefix/1000", 1000, countedRuns: 64) { "kind=like.image\($0)%" },
            match("like_within/1000", 1000, countedRuns: 64) { "body=like.%ticket \($0)%" },
            match("is/1000", 1000, countedRuns: 64) { _ in "edited=is.true" },
            // One more comes and goes.
            addRemove(1000), addRemove(18_000),
        ]
    }

    private static func addRemove(_ others: Int) -> Operation {
        Operation("filter/add_remove/\(others)") {
            var index = try ChatTable.index(of: (0..<others).lazy.map(conversation))
            let filter = try ChangeFilter(parsing: conversation(others)).bind(to: ChatTable.table).makeFilter()
            let binding = BoundBinding(id: 1, events: .insert, selection: nil, filter: filter)
            return { times in
                for _ in 0..<times {
                    index.addBindings([binding], as: others)
                    index.removeGroup(others)
                }
            }
        }
    }

    private static func conversation(_ number: Int) -> String {
        "conversation_id=eq.\(ChatTable.conversation(number))"
    }

    private static func match(
        _ name: String, _ subscriptions: Int, countedRuns: Int = 320, _ filter: @escaping (Int) -> String
    ) -> Operation {
        Operation("filter/\(name)", pairs: subscriptions, countedRuns: countedRuns) {
            var index = try ChatTable.index(of: (0..<subscriptions).lazy.map(filter))
            let changes = (0..<16).map { ChatTable.insert(conversation: $0 % subscriptions) }
            return { times in for turn in 0..<times { blackHole(index.match(changes[turn % 16])) } }
        }
    }
}
