package import Postgres
package import Wire

/// What is known of a table's policies: whether a user may see a row depends on some of its columns alone. The operator says
/// so, or `roost watch` found it.
///
/// It lets the hub keep answers of policies. It is held against what the catalog says of the policies (`DeclaredScope`),
/// and against what they really read whenever they are asked; it counts for nothing where that is more.
package struct Scope: Sendable, Equatable {
    /// In the table's order; none where every row is seen by the same users.
    package let columns: [Name]
    /// The tables that decide who may see what; answers are dropped when one of them changes.
    package let members: Set<UInt32>
    /// What policies read of the members tables, by their oids. Of those that are missing each change concerns everybody.
    package var reads: [UInt32: MemberReads] = [:]
    /// The SQL of what policies compare users by, such as `auth.uid()`; nil where it is not known.
    package var userKey: Name?

    package init(columns: [Name], members: Set<UInt32>) {
        self.columns = columns
        self.members = members
    }

    /// What rows that are seen by the same users have in common: the JSON of the columns, one behind the other.
    ///
    /// - Returns: nil where the record lacks one, as a row too large does.
    package func value(of record: [UInt8]) -> [UInt8]? {
        var value: [UInt8] = []
        for column in columns {
            guard let found = JSON(trusted: record[...])[column.text] else { return nil }
            value += found.bytes
            // No JSON goes on after a comma, so that two rows which differ have values that differ.
            if columns.count > 1 { value.append(UInt8(ascii: ",")) }
        }
        return value
    }
}

/// What `roost watch` wrote down: the visibility of a table's rows depends on some columns only, for as long as the members
/// tables do not change.
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
    /// One where it was declared; of a derived one those that the policies read now.
    package let columns: [Name]
    package let members: [UInt32]
    package let memberNames: String
    /// Without, everybody sees every row, and the declaration changes nothing.
    package let hasRowSecurity: Bool
    /// Found by `roost watch` in the policies, and not declared by anybody.
    package let isDerived: Bool
    package var problems: [Problem]

    /// The columns, for people.
    package var columnNames: String { columns.isEmpty ? "no column" : columns.map(\.text).joined(separator: " and ") }

    /// Reads the declarations and examines them.
    ///
    /// - Parameter table: only this one's, an oid.
    /// - Throws: `PostgresError`.
    package static func read(of table: String? = nil, on connection: PostgresConnection) throws -> [DeclaredScope] {
        // To plan the examination takes 20 ms of the server's time, and most databases have no scope.
        guard try connection.query(CatalogSQL.hasScope).count > 0 else { return [] }
        let rows = try connection.query(CatalogSQL.scopes, [table])
        var scopes: [DeclaredScope] = []
        for row in 0..<rows.count {
            guard let oid = rows.text(row, 0).flatMap({ UInt32($0) }) else { continue }
            if scopes.last?.oid != oid {
                scopes.append(
                    DeclaredScope(
                        oid: oid, table: rows.text(row, 1) ?? "",
                        columns: try JSON(parsing: Array((rows.text(row, 2) ?? "[]").utf8)).elements.compactMap {
                            $0.string.map { Name($0) }
                        },
                        members: (rows.text(row, 3) ?? "").split(separator: " ").compactMap { UInt32($0) },
                        memberNames: rows.text(row, 4) ?? "", hasRowSecurity: rows.flag(row, 5),
                        isDerived: rows.flag(row, 8), problems: []))
            }
            guard let kind = rows.text(row, 6), let text = rows.text(row, 7) else { continue }
            // A kind that this version does not know is a problem all the same.
            scopes[scopes.count - 1].problems.append(Problem(kind: .init(rawValue: kind) ?? .policy, text: text))
        }
        return scopes
    }
}
