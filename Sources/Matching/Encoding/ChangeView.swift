/// Which part of a change a subscriber is shown.
package struct ChangeView: Hashable, Sendable {
    /// What the subscription asked for; nil for all columns.
    package let selection: Selection?
    /// The columns the role may SELECT; nil for all.
    package let granted: Set<String>?
    package let oldRecord: OldRecord

    package enum OldRecord: Hashable, Sendable {
        /// The columns of the replica identity, as Postgres would show them to logical replication.
        case replicaIdentity
        /// The primary key alone: all that may be told of a row version whose visibility nobody can judge, or that the
        /// subscriber could not see.
        case primaryKey
    }

    package init(
        selection: Selection? = nil, granted: Set<String>? = nil, oldRecord: OldRecord = .replicaIdentity
    ) {
        self.selection = selection
        self.granted = granted
        self.oldRecord = oldRecord
    }

    func shows(_ column: Column) -> Bool {
        (selection?.includes(column) ?? true) && (granted?.contains(column.name) ?? true)
    }

    func showsOld(_ column: Column) -> Bool {
        shows(column)
            && (oldRecord == .primaryKey ? column.isPrimaryKey && column.isReplicaIdentity : column.isReplicaIdentity)
    }
}
