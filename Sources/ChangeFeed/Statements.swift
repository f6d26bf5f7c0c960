package import Postgres

/// How a hub is known to the database, where it goes on, and what it does besides reading.
enum FeedSQL: String, NamedStatement {
    case sessionOfFeed, position, register, storeCursor, claimNode, hubSessions, doorbellGranted, prune, outbox,
        sessionOfConditions
    static let file = StatementFile("Feed.sql")
}

/// What a window reads of the outbox.
enum WindowSQL: String, NamedStatement {
    case window, membersInWindow, heardInWindow, passedInWindow
    static let file = StatementFile("Window.sql")
}

/// What ties cursors to the history of a database (Migration010Epochs.sql).
enum EpochSQL: String, NamedStatement {
    case serverRun, makeEpoch, mendEpoch, epochs, pruneEpochs, newIncarnation, foreignChanges
    static let file = StatementFile("Epochs.sql")
}

/// What tells whether changes went from the outbox before they were read (Migration012Losses.sql).
enum LossSQL: String, NamedStatement {
    case outboxLook, latestRead, hasChangeOf, noteEmptied
    static let file = StatementFile("Losses.sql")
}

/// What members missed, and what of it may be gone.
enum RecoverySQL: String, NamedStatement {
    case recoveryGround, recoveryStored, recoveryWindow, recoverySlice
    static let file = StatementFile("Recovery.sql")
}

/// Rows that clients begin with.
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

/// What policies read of members tables.
enum MemberSQL: String, NamedStatement {
    case policyTrees, routineFacts, twinBody, relationFacts, equalityOperators
    static let file = StatementFile("Members.sql")
}

/// Whom the hub serves with row changes (Migration009Sessions.sql).
enum SessionListSQL: String, NamedStatement {
    case sessionOfSessions, storedSessions, storeSessions, forgetSessions, listTurn, sessionsAreListed,
        sessionsAreUnknown, withdrawList, sessionsElsewhere, sessionsAreSeen, sessionsAreProven, claimSessions,
        takeClaims
    static let file = StatementFile("SessionList.sql")
}

/// How the policies of a table are asked.
enum PolicySQL: String, NamedStatement {
    case policySession, policyDescription, policyFunction, policyBody, policyNulls, policyNull, policyKey, policyStored,
        deletedTables
    static let file = StatementFile("Policies.sql")
}

/// What the authority reads of realtime.messages.
enum AuthoritySQL: String, NamedStatement {
    case sessionOfAuthority, messagesTable, messagesReader, replay, replayUnexpired
    static let file = StatementFile("Authority.sql")
}

/// All files of this room, for the test that holds the names to them.
package enum FeedStatements {
    package static let files: [any NamedStatement.Type] = [
        FeedSQL.self, WindowSQL.self, EpochSQL.self, LossSQL.self, RecoverySQL.self, RowsSQL.self, CatalogSQL.self,
        MemberSQL.self,
        SessionListSQL.self, PolicySQL.self, AuthoritySQL.self,
    ]
}
