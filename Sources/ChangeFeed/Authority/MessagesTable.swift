import Hub
import Matching
import Postgres
import Wire

/// `realtime.messages` as the catalog has it (`MessagesTable.sql`).
struct MessagesTable {
    let table: Table
    let version: String
    private let columns: [String]
    /// The time and an id, as JSON.
    private let now: [UInt8]
    private let id: [UInt8]

    /// - Returns: nil where there is no such table.
    init?(_ result: QueryResult) {
        guard result.count == 1, let oid = result.text(0, 0).flatMap({ UInt32($0) }), let columns = result.bytes(0, 1),
            let version = result.text(0, 2), let now = result.bytes(0, 3), let id = result.bytes(0, 4)
        else { return nil }
        table = Table(oid: oid, schema: "realtime", name: "messages", columns: [], hasRowSecurity: true)
        self.columns = JSON(trusted: Array(columns)[...]).elements.compactMap(\.string)
        self.version = version
        self.now = Array(now)
        self.id = Array(id)
    }

    /// The row that the policies are asked about: what the original's probe has, so that a policy decides alike here and
    /// there (its lib/realtime/tenants/authorization.ex). That is the topic, the extension, an id and the times; the
    /// other columns have their defaults, among them `private`, which is false also for a private channel.
    func probe(topic: String, extension name: String) -> [UInt8] {
        var out = Array("{".utf8)
        for column in columns {
            if out.count > 1 { out.append(UInt8(ascii: ",")) }
            JSONString.encode(column, into: &out)
            out.append(UInt8(ascii: ":"))
            switch column {
            case "topic": JSONString.encode(topic, into: &out)
            case "extension": JSONString.encode(name, into: &out)
            case "id": out += id
            case "inserted_at", "updated_at": out += now
            case "private": out += "false".utf8
            default: out += "null".utf8
            }
        }
        out.append(UInt8(ascii: "}"))
        return out
    }
}
