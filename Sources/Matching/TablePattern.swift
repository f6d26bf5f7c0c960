/// Which tables a subscription is about: one, those of a schema, or all.
package struct TablePattern: Hashable, Sendable {
    /// nil for every schema.
    package let schema: String?
    /// nil for every table.
    package let name: String?

    /// `*` stands for every schema or table.
    package init(schema: String, name: String) {
        self.schema = schema == "*" ? nil : schema
        self.name = name == "*" ? nil : name
    }

    package var isWildcard: Bool { schema == nil || name == nil }

    package func includes(_ table: Table) -> Bool {
        (schema == nil || schema == table.schema) && (name == nil || name == table.name)
    }
}
