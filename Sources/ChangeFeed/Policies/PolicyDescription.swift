import Postgres
import Wire

/// What the catalog says of a role's rights to a table's rows (`PolicyDescription in Policies.sql`).
struct PolicyDescription: Equatable {
    let roleExists: Bool
    let isAssumable: Bool
    /// The hub's own role.
    let hub: String
    let mayCreateFunctions: Bool
    let schema: String?
    let name: String?
    let mayUseSchema: Bool
    let mayWrite: Bool
    let isRestricted: Bool
    /// SQL; nil where no policy grants anything.
    let permissive: String?
    let restrictive: String?
    /// A policy may look at the row as a whole.
    let readsRow: Bool
    private let columns: Set<String>
    /// The columns a record has to have to be asked about.
    let columnsSent: Set<String>
    /// A text array that differs when one of them is not the same any more.
    let marks: String
    /// Schemas that the policies name and the role may not use, as SQL.
    let unusableSchemas: String?

    /// - Returns: nil for a result of another shape.
    init?(_ result: QueryResult) {
        guard result.count == 1, result.width == 16 else { return nil }
        func names(_ column: Int) -> Set<String> {
            guard let list = result.bytes(0, column) else { return [] }
            return Set(JSON(trusted: Array(list)[...]).elements.compactMap(\.string))
        }
        roleExists = result.flag(0, 0)
        isAssumable = result.flag(0, 1)
        hub = result.text(0, 2) ?? ""
        mayCreateFunctions = result.flag(0, 3)
        schema = result.text(0, 4)
        name = result.text(0, 5)
        mayUseSchema = result.flag(0, 6)
        mayWrite = result.flag(0, 7)
        isRestricted = result.flag(0, 8)
        permissive = result.text(0, 9)
        restrictive = result.text(0, 10)
        readsRow = result.flag(0, 11)
        columns = names(12)
        columnsSent = names(13)
        marks = result.text(0, 14) ?? "{}"
        unusableSchemas = result.text(0, 15)
    }

    /// The condition that a row has to meet; nil where none does.
    var condition: String? {
        guard let permissive else { return nil }
        return restrictive.map { "(\(permissive)) AND \($0)" } ?? "(\(permissive))"
    }

    /// The columns that policies may look at; nil for any.
    var columnsRead: Set<String>? { readsRow ? nil : columns }
}
