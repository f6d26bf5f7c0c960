import Hub
import Matching
import Wire

/// A chat's table of messages, its rows, and subscriptions to them.
enum ChatTable {
    static let table = Table(
        oid: 16_400, schema: "public", name: "messages",
        columns: [
            column("id", "int8", "bigint", .decimal, isKey: true),
            column("conversation_id", "uuid", "uuid", .uuid), column("sender_id", "uuid", "uuid", .uuid),
            column("body", "text", "text", .text), column("kind", "text", "text", .textByBytes),
            column("seq", "int8", "bigint", .decimal), column("edited", "bool", "boolean", .boolean),
            column("created_at", "timestamptz", "timestamp with time zone", .timestamptz),
        ])

    private static func column(
        _ name: Name, _ type: Name, _ sqlType: Name, _ comparison: Comparison, isKey: Bool = false
    ) -> Column {
        Column(
            name: name, type: type, sqlType: sqlType, comparison: comparison, isPrimaryKey: isKey,
            isReplicaIdentity: isKey)
    }

    static func conversation(_ number: Int) -> String { id("0b1f3c52-7a0e-4c53-9f59-", number) }

    static func user(_ number: Int) -> String { id("5e0f29ab-2f6f-4bb4-8f60-", number) }

    private static func id(_ head: String, _ number: Int) -> String {
        let digits = String(number, radix: 16)
        return head + String(repeating: "0", count: 12 - digits.count) + digits
    }

    static func row(conversation number: Int, body: String = "See you at the harbour at six, bring the tickets.")
        -> [UInt8]
    {
        Array(
            #"{"id":\#(70_000 + number),"conversation_id":"\#(conversation(number))","#.utf8)
            + #""sender_id":"\#(user(number))","body":"\#(body)","kind":"text","seq":500,"#.utf8
            + #""edited":false,"created_at":"2026-01-01T00:00:00.123456+00:00"}"#.utf8
    }

    static func insert(conversation number: Int) -> RowChange {
        RowChange(
            id: Int64(number) + 1, table: table, operation: .insert, commitTimestamp: "2026-01-01T00:00:00.123Z",
            record: row(conversation: number), oldRecord: nil, isReduced: false)
    }

    static func update(conversation number: Int) -> RowChange {
        RowChange(
            id: Int64(number) + 1, table: table, operation: .update, commitTimestamp: "2026-01-01T00:00:00.123Z",
            record: row(conversation: number, body: "See you at the harbour at seven."),
            oldRecord: row(conversation: number), isReduced: false)
    }

    /// An index with a group for each of these filters, which wants inserts.
    static func index(of filters: some Sequence<String>) throws -> SubscriptionIndex {
        var index = SubscriptionIndex()
        for (group, filter) in filters.enumerated() {
            let filter = try ChangeFilter(parsing: filter).bind(to: table).makeFilter()
            index.addBindings([BoundBinding(id: group + 1, events: .insert, selection: nil, filter: filter)], as: group)
        }
        return index
    }

    /// The entry of a join's `postgres_changes` for the inserts of one conversation.
    static func entry(conversation number: Int) -> String {
        #"{"event":"INSERT","schema":"public","table":"messages","filter":"conversation_id=eq.\#(conversation(number))"}"#
    }
}
