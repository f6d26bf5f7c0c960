import Wire

/// One entry of `config.postgres_changes`.
package struct ChangeBinding: Equatable, Sendable {
    package let schema: String
    package let table: String
    package let kind: ChangeKind?
    package let filter: String?

    package init(schema: String, table: String, kind: ChangeKind?, filter: String?) {
        self.schema = schema
        self.table = table
        self.kind = kind
        self.filter = filter
    }

    /// The text of the entry.
    package var json: [UInt8] {
        var out = Array("{\"event\":\"".utf8)
        out += (kind?.rawValue ?? "*").utf8
        out += "\",\"schema\":".utf8
        JSONString.encode(schema, into: &out)
        out += ",\"table\":".utf8
        JSONString.encode(table, into: &out)
        if let filter {
            out += ",\"filter\":".utf8
            JSONString.encode(filter, into: &out)
        }
        out.append(UInt8(ascii: "}"))
        return out
    }
}
