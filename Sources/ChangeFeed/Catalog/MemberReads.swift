package import Wire

/// The part of a members table that a scoped table's policies read: it decides which changes affect which users' results.
///
/// Contains only what was fully understood. Each change of a members table without an entry affects every user.
package struct MemberReads: Sendable, Equatable {
    /// The columns that are read; nil if all may be.
    package var columns: Set<Name>?
    /// The places where the table is read. Whatever a place leaves open is unrestricted.
    package var accesses: [Access]

    /// One place that reads the table: only rows in which these columns have these values count there.
    package struct Access: Sendable, Hashable {
        /// The column compared with the scope column.
        package var value: Name?
        /// The column compared with the user's key (`Scope.userKey`).
        package var user: Name?

        package init(value: Name? = nil, user: Name? = nil) {
            self.value = value
            self.user = user
        }
    }

    package init(columns: Set<Name>?, accesses: [Access]) {
        self.columns = columns
        self.accesses = accesses
    }

    mutating func addRead(_ columns: Set<Name>?, _ access: Access) {
        self.columns = columns.flatMap { more in self.columns.map { $0.union(more) } }
        if !accesses.contains(access) { accesses.append(access) }
    }
}

/// A change of a members table, as a window reports it before its rows (MembersInWindow in Window.sql).
package enum MemberChange: Sendable, Equatable {
    /// Some change of the table.
    case table(UInt32)
    /// A change of one row: JSON of the old and the new row, nil before an insert and after a delete.
    case row(UInt32, old: [UInt8]?, new: [UInt8]?)

    package var table: UInt32 {
        switch self {
        case .table(let table), .row(let table, _, _): table
        }
    }
}
