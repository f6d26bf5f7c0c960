package import Wire

/// The meaning of one entry of `config.postgres_changes`.
package struct ChangeParameters: Sendable {
    package let events: EventSet
    package let tables: TablePattern
    package let filter: ChangeFilter
    /// The columns to show; nil for all.
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
        let schema = try Self.stringMember("schema", of: entry)
        let table = try Self.stringMember("table", of: entry)
        guard schema != nil || table != nil else {
            throw SubscriptionError("an entry of postgres_changes must name at least a schema or a table")
        }
        events = EventSet(clientText: entry["event"]?.string ?? "*")
        tables = TablePattern(schema: Name(schema ?? "public"), name: Name(table ?? "*"))
        selection = try Self.selection(of: entry)
        if selection != nil, tables.isWildcard {
            throw SubscriptionError("select needs an explicit schema and table, not a wildcard")
        }
        filter = try ChangeFilter(parsing: try Self.stringMember("filter", of: entry) ?? "")
    }

    private static func stringMember(_ key: String, of entry: JSON) throws(SubscriptionError) -> String? {
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

/// The columns that a subscription asked for, in any order; the primary key is always included.
package struct Selection: Hashable, Sendable {
    /// The columns' names, sorted by their bytes, without duplicates.
    package let columns: [Name]

    /// Nil if `columns` is empty, which means all columns.
    package init?(_ columns: [String]) {
        guard !columns.isEmpty else { return nil }
        self.columns = Set(columns.map { Name($0) }).sorted()
    }

    package func includes(_ column: Column) -> Bool {
        column.isPrimaryKey || columns.contains(column.name)
    }

    /// Checks that `table` has all of the columns.
    package func checkColumns(in table: Table) throws(SubscriptionError) {
        for name in columns where table.column(name) == nil {
            throw .missingColumn(name, in: table)
        }
    }
}

extension SubscriptionError {
    static func missingColumn(_ name: Name, in table: Table) -> SubscriptionError {
        SubscriptionError("column \(quoteText(name.text)) does not exist in table \"\(table.schema).\(table.name)\"")
    }
}

/// The reason why a subscription to row changes is refused, in one sentence for the subscription's author.
package struct SubscriptionError: Error, Hashable, Sendable, CustomStringConvertible {
    package let message: String

    package init(_ message: String) {
        self.message = message
    }

    package var description: String { message }

    /// A client's text in quotation marks, shortened so that a message stays readable.
    package static func quoteText(_ text: String) -> String {
        let limit = 100
        let scalars = text.unicodeScalars
        guard let end = scalars.index(scalars.startIndex, offsetBy: limit, limitedBy: scalars.endIndex),
            end != scalars.endIndex
        else { return "\"\(text)\"" }
        return "\"\(String(scalars[..<end]))…\""
    }
}
