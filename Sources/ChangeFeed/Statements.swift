package import Postgres

/// A hub's registration in the database, its position, and its work besides reading.
enum FeedSQL: String, NamedStatement {
    case sessionOfFeed, position, register, storeCursor, claimNode, hubSessions, doorbellGranted, prune, outbox,
        sessionOfConditions
    static let file = StatementFile("Feed.sql")
}

/// The outbox as a window reads it.
enum WindowSQL: String, NamedStatement {
    case window, membersInWindow, heardInWindow, passedInWindow
    static let file = StatementFile("Window.sql")
}

/// Epochs, which tie cursors to the history of a database (SchemaRecovery.sql).
enum EpochSQL: String, NamedStatement {
    case serverRun, makeEpoch, mendEpoch, epochs, pruneEpochs, newIncarnation, foreignChanges
    static let file = StatementFile("Epochs.sql")
}

/// The check for changes deleted from the outbox before they were read (SchemaRecovery.sql).
enum LossSQL: String, NamedStatement {
    case outboxLook, latestRead, hasChangeOf, noteEmptied
    static let file = StatementFile("Losses.sql")
}

/// Missed changes of members, and the part of them that may be gone.
enum RecoverySQL: String, NamedStatement {
    case recoveryGround, recoveryStored, recoveryWindow, recoverySlice
    static let file = StatementFile("Recovery.sql")
}

/// Rows that clients start from.
enum RowsSQL: String, NamedStatement {
    case sessionOfRows, rowsBegin
    static let file = StatementFile("Rows.sql")
}

/// The watched tables, and what roles may read of them.
enum CatalogSQL: String, NamedStatement {
    case catalogVersion, catalogVersionFunction, mayCompile, catalog, access, tableFaults, noteCaptures,
        refreshTextNeeds,
        displacedTables, hasScope, scopes, findTable
    static let file = StatementFile("Catalog.sql")
}

/// Policies' reads of members tables.
enum MemberSQL: String, NamedStatement {
    case policyTrees, routineFacts, twinBody, relationFacts, equalityOperators
    static let file = StatementFile("Members.sql")
}

/// The sessions that the hub serves with row changes (SchemaSessions.sql).
enum SessionListSQL: String, NamedStatement {
    case sessionOfSessions, storedSessions, storeSessions, forgetSessions, listTurn, sessionsAreListed,
        sessionsAreUnknown, withdrawList, sessionsElsewhere, sessionsAreSeen, sessionsAreProven, claimSessions,
        takeClaims
    static let file = StatementFile("SessionList.sql")
}

/// The evaluation of a table's policies.
enum PolicySQL: String, NamedStatement {
    case policySession, policyDescription, policyFunction, policyBody, policyNulls, policyNull, policyKey, policyStored,
        deletedTables
    static let file = StatementFile("Policies.sql")
}

/// The authority's reads of realtime.messages.
enum AuthoritySQL: String, NamedStatement {
    case sessionOfAuthority, messagesTable, messagesReader, replay, replayUnexpired
    static let file = StatementFile("Authority.sql")
}

/// All files of this room, for the test that compares their names with the enumerations.
package enum FeedStatements {
    package static let files: [any NamedStatement.Type] = [
        FeedSQL.self, WindowSQL.self, EpochSQL.self, LossSQL.self, RecoverySQL.self, RowsSQL.self, CatalogSQL.self,
        MemberSQL.self,
        SessionListSQL.self, PolicySQL.self, AuthoritySQL.self,
    ]
}
