import Wire

/// What a list of rows shows: one entry of `config.rows` in a join, and the changes that keep it right.
package struct ListRequest: Equatable, Sendable {
    package let changes: ChangeRequest
    /// No two rows are at one place of it.
    let order: RowOrder
    /// How many rows are shown.
    package let limit: Int
    /// The columns that tell one row from another.
    let key: [String]

    /// The most rows that a hub sends for one entry.
    package static let mostRows = 1000

    package init(
        schema: String, table: String, filter: String?, order: RowOrder = .key, limit: Int,
        key: [String] = ["id"]
    ) {
        changes = ChangeRequest(schema: schema, table: table, kind: nil, filter: filter)
        self.order = order.total(by: key)
        self.limit = min(max(1, limit), Self.mostRows)
        self.key = key
    }

    /// How many rows are held: some more than are shown, so that the list stays full while rows are deleted.
    package var capacity: Int { min(limit + max(10, limit / 4), Self.mostRows) }

    /// The text of the entry, a JSON object.
    ///
    /// - Parameter isFresh: the rows are read also if the channel's cursor is good.
    func json(isFresh: Bool) -> [UInt8] {
        var out = Array("{\"schema\":".utf8) + JSONString.encode(changes.schema)
        out += ",\"table\":".utf8 + JSONString.encode(changes.table)
        if let filter = changes.filter { out += ",\"filter\":".utf8 + JSONString.encode(filter) }
        out += ",\"order\":".utf8 + JSONString.encode(order.text)
        out += ",\"limit\":\(capacity)".utf8
        if isFresh { out += ",\"fresh\":true".utf8 }
        return out + [UInt8(ascii: "}")]
    }

    /// The whole request, for whoever stores what came of it.
    var text: String { String(decoding: json(isFresh: false), as: UTF8.self) + key.joined(separator: ",") }

    /// What a row is known by in the list; nil where a column of the key is missing.
    func identity(of row: JSON?) -> String? {
        guard let row else { return nil }
        let values = key.compactMap { name in row[name].map { $0.string ?? $0.description } }
        return values.count == key.count ? values.joined(separator: ",") : nil
    }
}
