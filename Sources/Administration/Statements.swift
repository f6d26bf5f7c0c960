package import Postgres

/// What `roost doctor` asks of a database. All of it reads only, and works for a role that may do little.
enum DoctorSQL: String, NamedStatement {
    case connections, longTransactions, notificationQueue, standbys, idleSlots, rights, nodes, outboxState,
        unwatchedChanges, silentWriters, realtimeState, rolesOutOfReach, tablesWithoutPolicy
    static let file = StatementFile(PackageResources.Doctor_sql)
}

/// `roost watch` and `roost unwatch`: tables, their triggers and their scopes.
enum WatchingSQL: String, NamedStatement {
    case describeTable, publicationTables, watchTable, unwatchTable, storeScope, scopeColumn, scopesResting, scopeRows,
        scopeUsers
    static let file = StatementFile(PackageResources.Watching_sql)
}

/// Who holds up a command that waits.
enum LockSQL: String, NamedStatement {
    case lockHolder, sessionWait
    static let file = StatementFile(PackageResources.Locks_sql)
}

/// All files of this room, for the test that holds the names to them.
package enum AdministrationSQL {
    package static let files: [any NamedStatement.Type] = [DoctorSQL.self, WatchingSQL.self, LockSQL.self]
}
