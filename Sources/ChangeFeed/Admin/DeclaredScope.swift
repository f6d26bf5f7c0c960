import Postgres

/// A declaration of `roost watch --scope`: the visibility of a table's rows depends on one column only, for as long as
/// the members tables do not change.
struct DeclaredScope: Equatable {
    /// What is wrong with a declaration. The hub does not use one that has any, and asks row by row, which is slower.
    struct Problem: Equatable {
        enum Kind: String {
            /// `roost watch` mends it.
            case watch
            /// A table or column is gone.
            case gone
            /// Visibility may depend on more than is declared.
            case policy
        }

        let kind: Kind
        /// A clause without a full stop.
        let text: String
    }

    let oid: UInt32
    /// Schema and name, quoted where they must be; the oid where the table is gone.
    let table: String
    let column: String
    let members: [UInt32]
    let memberNames: String
    /// Without, everybody sees every row, and the declaration changes nothing.
    let hasRowSecurity: Bool
    var problems: [Problem]

    /// Reads the declarations and examines them.
    ///
    /// - Parameter table: only this one's, an oid.
    /// - Throws: `PostgresError`.
    static func read(of table: String? = nil, on connection: PostgresConnection) throws -> [DeclaredScope] {
        let rows = try connection.query(SQL.scopes, [table])
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
