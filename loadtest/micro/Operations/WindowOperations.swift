import Hub
import Matching

/// A window of 1,000 changes, each in one of 1,000 conversations with ten subscribers: figures are of one change.
enum WindowOperations {
    private static let conversations = 1000
    private static let subscribers = 10

    static var all: [Operation] {
        [
            // Every subscriber has an entry of its own, as where they differ in what they select.
            Operation("window/match/10000", pairs: 10_000, batch: conversations, countedRuns: 2) {
                var index = try ChatTable.index(
                    of: (0..<conversations * subscribers).lazy.map { number in
                        "conversation_id=eq.\(ChatTable.conversation(number % conversations))"
                    })
                let window = makeWindow()
                return { times in
                    for _ in 0..<times { for change in window { blackHole(index.match(change)) } }
                }
            },
            // Equal subscriptions share an entry; what matches is encoded and becomes frames.
            Operation("window/deliver/10000", pairs: 10_000, batch: conversations, countedRuns: 2) {
                let room = Room()
                let groups = try seat(in: room)
                var index = try ChatTable.index(
                    of: (0..<conversations).lazy.map { "conversation_id=eq.\(ChatTable.conversation($0))" })
                var encoder = ChangeEncoder()
                let window = makeWindow()
                return { times in
                    for _ in 0..<times {
                        for change in window {
                            let data = encoder.encodeData(for: change)
                            for delivery in index.match(change).deliveries {
                                let delivery = ChangeDelivery(
                                    group: groups[delivery.group], operation: change.operation, ids: delivery.ids,
                                    data: data)
                                room.deliver(.change(delivery))
                            }
                        }
                    }
                }
            },
        ]
    }

    private static func makeWindow() -> [RowChange] {
        (0..<conversations).map { ChatTable.insert(conversation: $0) }
    }

    /// Ten subscribers for each conversation.
    ///
    /// - Returns: the groups of the conversations.
    private static func seat(in room: Room) throws -> [ChangeGroupID] {
        let joins = (0..<conversations).map { number in
            ClientText.join(
                topic: "realtime:conversation:\(number)", changes: "[\(ChatTable.entry(conversation: number))]")
        }
        var groups: [ChangeGroupID] = []
        for (number, join) in joins.enumerated() {
            let first = Slot(number * subscribers)
            room.connect(first..<first + Slot(subscribers))
            groups += try room.join(join, from: first)
            for slot in first + 1..<first + Slot(subscribers) { try room.join(join, from: slot) }
        }
        return groups
    }
}
