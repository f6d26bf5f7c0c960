package import Wire

/// What one entry of `config.postgres_changes` asks for.
package struct ChangeParameters: Sendable {
    package let events: EventSet
    package let tables: TablePattern
    package let filter: ChangeFilter
    /// nil for all columns.
    package let selection: Selection?

    package init(events: EventSet, tables: TablePattern, filter: ChangeFilter, selection: Selection?) {
        self.events = events
        self.tables = tables
        self.filter = filter
        self.selection = selection
    }

    /// Reads an entry as a client sent it. A key with the value `null` counts as absent.
    package init(_ entry: JSON) throws(SubscriptionError) {
        guard entry.kind == .object else {
            throw SubscriptionError("an entry of postgres_changes must be an object with at least a schema or a table")
        }
        let schema = try Self.text("schema", of: entry)
        let table = try Self.text("table", of: entry)
        guard schema != nil || table != nil else {
            throw SubscriptionError("an entry of postgres_changes must name at least a schema or a table")
        }
        events = EventSet(clientText: entry["event"]?.string ?? "*")
        tables = TablePattern(schema: schema ?? "public", name: table ?? "*")
        selection = try Self.selection(of: entry)
        if selection != nil, tables.isWildcard {
            throw SubscriptionError("select needs an explicit schema and table, not a wildcard")
        }
        filter = try ChangeFilter(parsing: try Self.text("filter", of: entry) ?? "")
    }

    private static func text(_ key: String, of entry: JSON) throws(SubscriptionError) -> String? {
        guard let value = entry[key], !value.isNull else { return nil }
        guard let text = value.string else { throw SubscriptionError("\(key) must be a string") }
        return text
    }

    private static func selection(of entry: JSON) throws(SubscriptionError) -> Selection? {
        guard let value = entry["select"], !value.isNull else { return nil }
        guard value.kind == .array else {
            throw SubscriptionError(#"select must be a list of column names, such as ["id", "body"]"#)
        }
        return Selection(value.elements.compactMap(\.string))
    }
}
