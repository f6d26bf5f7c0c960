package import Postgres
package import Wire

/// A fact about a table's policies: a user's view of a row depends only on some of the row's columns. The operator declared
/// it, or `roost watch` found it.
///
/// A scope lets the hub keep the results of policies. It is checked against what the catalog says of the policies
/// (`DeclaredScope`), and against what they really read each time they run; if that is more, the scope is void.
package struct Scope: Sendable, Equatable {
    /// In the table's order; none if every row is seen by the same users.
    package let columns: [Name]
    /// The tables that decide who may see what; kept results are dropped when one of them changes.
    package let members: Set<UInt32>
    /// The policies' reads of the members tables, by oid. Each change of a members table without an entry affects
    /// every user.
    package var reads: [UInt32: MemberReads] = [:]
    /// The SQL of what policies compare users by, such as `auth.uid()`; nil if unknown.
    package var userKey: Name?

    package init(columns: [Name], members: Set<UInt32>) {
        self.columns = columns
        self.members = members
    }

    /// The value that rows seen by the same users have in common: the columns' JSON, concatenated.
    ///
    /// - Returns: nil if the record lacks a column, as that of a row too large does.
    package func value(of record: [UInt8]) -> [UInt8]? {
        var value: [UInt8] = []
        for column in columns {
            guard let found = JSON(trusted: record[...])[column.text] else { return nil }
            value += found.bytes
            // No JSON value continues after a comma, so rows that differ have different values.
            if columns.count > 1 { value.append(UInt8(ascii: ",")) }
        }
        return value
    }
}

/// A record by `roost watch`: the visibility of a table's rows depends only on some columns, for as long as the members
/// tables do not change.
package struct DeclaredScope: Equatable {
    /// A fault in a declaration. The hub does not use a faulty declaration, but evaluates policies row by row, which is
    /// slower.
    package struct Problem: Equatable {
        package enum Kind: String {
            /// `roost watch` repairs it.
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
    /// Schema and name, quoted if necessary; the oid if the table is gone.
    package let table: String
    /// One if declared; for a derived scope, those that the policies read now.
    package let columns: [Name]
    package let members: [UInt32]
    package let memberNames: String
    /// Without row level security, every user sees every row, and the declaration has no effect.
    package let hasRowSecurity: Bool
    /// True if `roost watch` found it in the policies, rather than a person declaring it.
    package let isDerived: Bool
    package var problems: [Problem]

    /// The columns, for people.
    package var columnNames: String { columns.isEmpty ? "no column" : columns.map(\.text).joined(separator: " and ") }

    /// Reads the declarations and examines them.
    ///
    /// - Parameter table: limits the read to this table, an oid.
    /// - Throws: `PostgresError`.
    package static func readScopes(of table: String? = nil, on connection: PostgresConnection) throws -> [DeclaredScope]
    {
        // Planning the examination takes 20 ms of the server's time, and most databases have no scope.
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
            // A kind that this version does not know is still a problem.
            scopes[scopes.count - 1].problems.append(Problem(kind: .init(rawValue: kind) ?? .policy, text: text))
        }
        return scopes
    }
}
