package import Postgres

/// The operator's word on a table that whether a user may see a row depends on one column alone (`roost watch --scope`).
///
/// It lets the hub keep answers of policies. It is held against what the catalog says of the policies (`DeclaredScope`),
/// and against what they really read whenever they are asked; it counts for nothing where that is more.
package struct Scope: Sendable, Equatable {
    package let column: String
    /// The tables that decide who may see what; answers are dropped when one of them changes.
    package let members: Set<UInt32>
}

/// A declaration of `roost watch --scope`: the visibility of a table's rows depends on one column only, for as long as
/// the members tables do not change.
package struct DeclaredScope: Equatable {
    /// What is wrong with a declaration. The hub does not use one that has any, and asks row by row, which is slower.
    package struct Problem: Equatable {
        package enum Kind: String {
            /// `roost watch` mends it.
            case watch
            /// A table or column is gone.
            case gone
            /// Visibility may depend on more than is declared.
            case policy
        }

        package let kind: Kind
        /// A clause without a full stop.
        package let text: String
    }

    package let oid: UInt32
    /// Schema and name, quoted where they must be; the oid where the table is gone.
    package let table: String
    package let column: String
    package let members: [UInt32]
    package let memberNames: String
    /// Without, everybody sees every row, and the declaration changes nothing.
    package let hasRowSecurity: Bool
    package var problems: [Problem]

    /// Reads the declarations and examines them.
    ///
    /// - Parameter table: only this one's, an oid.
    /// - Throws: `PostgresError`.
    package static func read(of table: String? = nil, on connection: PostgresConnection) throws -> [DeclaredScope] {
        let rows = try connection.query(CatalogSQL.scopes, [table])
        var scopes: [DeclaredScope] = []
        for row in 0..<rows.count {
            guard let oid = rows.text(row, 0).flatMap({ UInt32($0) }) else { continue }
            if scopes.last?.oid != oid {
                scopes.append(
                    DeclaredScope(
                        oid: oid, table: rows.text(row, 1) ?? "", column: rows.text(row, 2) ?? "",
                        members: (rows.text(row, 3) ?? "").split(separator: " ").compactMap { UInt32($0) },
                        memberNames: rows.text(row, 4) ?? "", hasRowSecurity: rows.flag(row, 5), problems: []))
            }
            guard let kind = rows.text(row, 6), let text = rows.text(row, 7) else { continue }
            // A kind that this version does not know is a problem all the same.
            scopes[scopes.count - 1].problems.append(Problem(kind: .init(rawValue: kind) ?? .policy, text: text))
        }
        return scopes
    }
}
