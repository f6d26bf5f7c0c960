package import Wire

/// What the policies of a scoped table read of one members table: which of its changes concern whose answers.
///
/// Only what was understood wholly is told here. A members table of which nothing is known concerns everybody with each change.
package struct MemberReads: Sendable, Equatable {
    /// The columns that are read; nil where they may be all.
    package var columns: Set<Name>?
    /// The places where it is read. What one of them leaves open concerns all.
    package var accesses: [Access]

    /// One place: of the table only those rows count there in which these columns have these values.
    package struct Access: Sendable, Hashable {
        /// The one that is compared with the scope column.
        package var value: Name?
        /// The one that is compared with the user's key (`Scope.userKey`).
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

    mutating func add(_ columns: Set<Name>?, _ access: Access) {
        self.columns = columns.flatMap { more in self.columns.map { $0.union(more) } }
        if !accesses.contains(access) { accesses.append(access) }
    }
}

/// A change of a members table, as a window tells of it before its rows (MembersInWindow in Window.sql).
package enum MemberChange: Sendable, Equatable {
    /// Something of the table changed.
    case table(UInt32)
    /// One row of the table did: JSON of what it was and of what it is, nil where it was not or is no more.
    case row(UInt32, old: [UInt8]?, new: [UInt8]?)

    package var table: UInt32 {
        switch self {
        case .table(let table), .row(let table, _, _): table
        }
    }
}
