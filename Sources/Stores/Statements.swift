package import Postgres

/// Who is present in channels at this hub, so that its next process knows it.
enum PresenceSQL: String, NamedStatement {
    case presenceSession, storePresence, forgetPresence, storedPresence
    static let file = StatementFile("Presence.sql")
}

/// Who is online at this hub, and what the application is told of it.
enum UserSQL: String, NamedStatement {
    case onlineUsers, heartbeat, beginTurn, noteTransitions
    static let file = StatementFile("Users.sql")
}

/// The sessions of pushes, and which hubs send them.
enum PushHubSQL: String, NamedStatement {
    case pushSession, heartbeat
    static let file = StatementFile("Hubs.sql")
}

/// Phones that users registered, and tokens that are gone.
enum DeviceSQL: String, NamedStatement {
    case registerDevice, unregisterDevice, devicesOfUser, dropDestination
    static let file = StatementFile("Devices.sql")
}

/// Live Activities: registered by users, owned by one hub each, stamped before they are sent something.
enum ActivitySQL: String, NamedStatement {
    case registerActivity, findActivities, endActivities, adoptActivities, stampActivities, noteDelivered,
        pruneActivities, bearerOfActivity, becomeUser
    static let file = StatementFile("Activities.sql")
}

/// The queue of alerts, which all hubs of a database share.
enum AlertSQL: String, NamedStatement {
    case enqueueAlerts, decideAlerts, waitingAlerts, takeAlerts, settleAlerts, giveBackAlerts, nextAlert, holdAlerts,
        closeUnanswered, unsettledAlerts, handOverAlerts, pruneAlerts
    static let file = StatementFile("Alerts.sql")
}

/// Who is to hear of changes, by the operator's statement.
enum AudienceSQL: String, NamedStatement {
    case beginReading, askAudience, findBearers
    static let file = StatementFile("Audience.sql")
}

/// Rows that are committed with the closes of streams.
enum StreamSQL: String, NamedStatement {
    case streamSession, beginCommit, becomeBearer, endCommit, settleCommit, commitResult, forgetCommit, pruneCommits
    static let file = StatementFile("Streams.sql")
}

/// The operator's statements for the sample chat.
enum SampleChatSQL: String, NamedStatement {
    case audienceOfSampleChat, factsOfSampleChat, statusOfSampleChat
    static let file = StatementFile("SampleChat.sql")
}

/// All files of this room, for the test that holds the names to them.
package enum StoresSQL {
    package static let files: [any NamedStatement.Type] = [
        PresenceSQL.self, UserSQL.self, PushHubSQL.self, DeviceSQL.self, ActivitySQL.self, AlertSQL.self,
        AudienceSQL.self, SampleChatSQL.self, StreamSQL.self,
    ]
}
