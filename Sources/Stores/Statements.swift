package import Postgres

/// Presences in channels at this hub, for its next process.
enum PresenceSQL: String, NamedStatement {
    case presenceSession, storePresence, forgetPresence, storedPresence
    static let file = StatementFile("Presence.sql")
}

/// The users online at this hub, as the application was told.
enum UserSQL: String, NamedStatement {
    case onlineUsers, heartbeat, beginTurn, noteTransitions
    static let file = StatementFile("Users.sql")
}

/// The session that reports receipts to the application.
enum ReceiptSQL: String, NamedStatement {
    case receiptSession
    static let file = StatementFile("Receipts.sql")
}

/// Stored broadcasts.
enum MessageSQL: String, NamedStatement {
    case messageSession, messageColumns, storeMessages, storeExpiringMessages
    static let file = StatementFile("Messages.sql")
}

/// The sessions of pushes, and the hubs that send them.
enum PushHubSQL: String, NamedStatement {
    case pushSession, heartbeat
    static let file = StatementFile("Hubs.sql")
}

/// Registered devices, and tokens that are no longer valid.
enum DeviceSQL: String, NamedStatement {
    case registerDevice, unregisterDevice, devicesOfUser, keepEnvironment, dropDestination
    static let file = StatementFile("Devices.sql")
}

/// Live Activities: registered by users, owned by one hub each, stamped before each push.
enum ActivitySQL: String, NamedStatement {
    case registerActivity, findActivities, endActivities, adoptActivities, stampActivities, keepPosts, noteDelivered,
        pruneActivities, bearerOfActivity, becomeUser
    static let file = StatementFile("Activities.sql")
}

/// The queue of alerts, shared by all hubs of a database.
enum AlertSQL: String, NamedStatement {
    case enqueueAlerts, decideAlerts, waitingAlerts, takeAlerts, settleAlerts, giveBackAlerts, nextAlert, holdAlerts,
        closeUnanswered, unsettledAlerts, handOverAlerts, pruneAlerts, withdrawAlerts, sparePhones, sessionsOfPhones
    static let file = StatementFile("Alerts.sql")
}

/// Rows that are pushed at a time that they contain.
enum TimedSQL: String, NamedStatement {
    case openTimedSource, noteTimedLook, missedTimedRows, takeTimedRows, nextTimedRow, retakeTimedRows, readTimedRows,
        settleTimedRows, timedMessages, pruneTimedRows, examineTimedColumn, examineTimedCondition, timedHistory
    static let file = StatementFile("TimedRows.sql")
}

/// The badges of users who have read something.
enum BadgeSQL: String, NamedStatement {
    case askBadges, usersWithPhones, claimBadges, forgetBadges
    static let file = StatementFile("Badges.sql")
}

/// The outcomes of alerts, for operators.
enum AlertTraceSQL: String, NamedStatement {
    case traceSession, alertsOfMessage, alertsOfUser
    static let file = StatementFile("AlertTrace.sql")
}

/// Devices stored by the application, and users who are notified by name.
enum AppTokenSQL: String, NamedStatement {
    case askTokens, examineTokens, askEverybody, compareTokens, addTokens, removeTokens, usersWithPhones, notifiedUsers,
        notify
    static let file = StatementFile("AppTokens.sql")
}

/// The audience of changes, by the operator's statement.
enum AudienceSQL: String, NamedStatement {
    case beginReading, askAudience, audienceColumns, findBearers
    static let file = StatementFile("Audience.sql")
}

/// Rows that are committed when streams close.
enum StreamSQL: String, NamedStatement {
    case streamSession, beginCommit, becomeBearer, endCommit, settleCommit, commitResult, forgetCommit, pruneCommits,
        preparedClose
    static let file = StatementFile("Streams.sql")
}

/// The operator's statements for the sample chat.
enum SampleChatSQL: String, NamedStatement {
    case audienceOfSampleChat, badgeOfSampleChat, factsOfSampleChat, statusOfSampleChat, receiptsOfSampleChat
    static let file = StatementFile("SampleChat.sql")
}

/// All statement files of this room, for the test that checks their names.
package enum StoresSQL {
    package static let files: [any NamedStatement.Type] = [
        PresenceSQL.self, UserSQL.self, ReceiptSQL.self, MessageSQL.self, PushHubSQL.self, DeviceSQL.self,
        ActivitySQL.self,
        AlertSQL.self, AlertTraceSQL.self, BadgeSQL.self, AudienceSQL.self, AppTokenSQL.self, SampleChatSQL.self,
        StreamSQL.self, TimedSQL.self,
    ]
}
