/// The columns a subscription asked for, whatever their order; the primary key comes with them.
package struct Selection: Hashable, Sendable {
    /// Sorted by their bytes, each once.
    package let columns: [String]

    /// nil if `columns` is empty, which means that all are wanted.
    package init?(_ columns: [String]) {
        guard !columns.isEmpty else { return nil }
        self.columns = Set(columns).sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }

    package func includes(_ column: Column) -> Bool {
        column.isPrimaryKey || columns.contains(column.name)
    }

    /// Checks that `table` has all of the columns.
    package func check(in table: Table) throws(SubscriptionError) {
        for name in columns where table.column(name) == nil {
            throw .missingColumn(name, in: table)
        }
    }
}

extension SubscriptionError {
    static func missingColumn(_ name: String, in table: Table) -> SubscriptionError {
        SubscriptionError("column \(quote(name)) does not exist in table \"\(table.schema).\(table.name)\"")
    }
}
