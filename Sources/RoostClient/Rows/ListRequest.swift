import Wire

/// The definition of a list of rows: one entry of `config.rows` in a join, and the changes that keep the list right.
package struct ListRequest: Equatable, Sendable {
    package let changes: ChangeRequest
    /// A total order: no two rows have the same place.
    let order: RowOrder
    /// The number of rows to show.
    package let limit: Int
    /// The columns that identify a row.
    let key: [String]

    /// The most rows that a hub sends for one entry.
    package static let mostRows = 1000

    package init(
        schema: String, table: String, filter: String?, order: RowOrder = .key, limit: Int,
        key: [String] = ["id"]
    ) {
        changes = ChangeRequest(schema: schema, table: table, kind: nil, filter: filter)
        self.order = order.totalOrder(by: key)
        self.limit = min(max(1, limit), Self.mostRows)
        self.key = key
    }

    /// The number of rows to hold: some more than are shown, so that the list stays full while rows are deleted.
    package var capacity: Int { min(limit + max(10, limit / 4), Self.mostRows) }

    /// The entry as the text of a JSON object.
    ///
    /// - Parameter isFresh: reads the rows even if the channel's cursor is valid.
    func json(isFresh: Bool) -> [UInt8] {
        var out = Array("{\"schema\":".utf8) + JSONString.encode(changes.schema)
        out += ",\"table\":".utf8 + JSONString.encode(changes.table)
        if let filter = changes.filter { out += ",\"filter\":".utf8 + JSONString.encode(filter) }
        out += ",\"order\":".utf8 + JSONString.encode(order.text)
        out += ",\"limit\":\(capacity)".utf8
        if isFresh { out += ",\"fresh\":true".utf8 }
        return out + [UInt8(ascii: "}")]
    }

    /// The whole request, to compare with a stored one.
    var text: String { String(decoding: json(isFresh: false), as: UTF8.self) + key.joined(separator: ",") }

    /// The row's identity in the list; nil if a column of the key is missing.
    func identity(of row: JSON?) -> String? {
        guard let row else { return nil }
        let values = key.compactMap { name in row[name].map { $0.string ?? $0.description } }
        return values.count == key.count ? values.joined(separator: ",") : nil
    }
}
