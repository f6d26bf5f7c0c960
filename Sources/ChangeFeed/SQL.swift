/// The statements of this room, embedded from `SQL/`.
enum SQL {
    static let catalogVersion = CatalogSQL.catalogVersion.text
    static let notificationQueue = text(PackageResources.NotificationQueue_sql)
    static let silentWriters = text(PackageResources.SilentWriters_sql)
    static let schemaVersion = text(PackageResources.SchemaVersion_sql)
    static let schemaExists = text(PackageResources.SchemaExists_sql)
    static let describeTable = text(PackageResources.DescribeTable_sql)
    static let watchTable = text(PackageResources.WatchTable_sql)
    static let unwatchTable = text(PackageResources.UnwatchTable_sql)
    static let publicationTables = text(PackageResources.PublicationTables_sql)
    static let rights = text(PackageResources.Rights_sql)
    static let scopes = CatalogSQL.scopes.text
    static let storeScope = text(PackageResources.StoreScope_sql)
    static let scopeColumn = text(PackageResources.ScopeColumn_sql)
    static let scopesResting = text(PackageResources.ScopesResting_sql)
    static let scopeRows = text(PackageResources.ScopeRows_sql)
    static let scopeUsers = text(PackageResources.ScopeUsers_sql)
    static let realtimeState = text(PackageResources.RealtimeState_sql)
    static let sessionOfPresence = text(PackageResources.SessionOfPresence_sql)
    static let storePresence = text(PackageResources.StorePresence_sql)
    static let forgetPresence = text(PackageResources.ForgetPresence_sql)
    static let storedPresence = text(PackageResources.StoredPresence_sql)
    static let onlineUsers = text(PackageResources.OnlineUsers_sql)
    static let signOfLife = text(PackageResources.SignOfLife_sql)
    static let usersTurn = text(PackageResources.UsersTurn_sql)
    static let tellUsers = text(PackageResources.TellUsers_sql)
    static let statusOfChatUsers = text(PackageResources.StatusOfChatUsers_sql)
    static let sessionOfPush = text(PackageResources.SessionOfPush_sql)
    static let registerDevice = text(PackageResources.RegisterDevice_sql)
    static let unregisterDevice = text(PackageResources.UnregisterDevice_sql)
    static let devicesOfUser = text(PackageResources.DevicesOfUser_sql)
    static let registerActivity = text(PackageResources.RegisterActivity_sql)
    static let activities = text(PackageResources.Activities_sql)
    static let endActivities = text(PackageResources.EndActivities_sql)
    static let dropDestination = text(PackageResources.DropDestination_sql)
    static let adoptActivities = text(PackageResources.AdoptActivities_sql)
    static let signOfPush = text(PackageResources.SignOfPush_sql)
    static let stampActivities = text(PackageResources.StampActivities_sql)
    static let audienceTurn = text(PackageResources.AudienceTurn_sql)
    static let audience = text(PackageResources.Audience_sql)
    static let bearers = text(PackageResources.Bearers_sql)
    static let audienceOfSampleChat = text(PackageResources.AudienceOfSampleChat_sql)
    static let enqueueAlerts = text(PackageResources.EnqueueAlerts_sql)
    static let onlineElsewhere = text(PackageResources.OnlineElsewhere_sql)
    static let takeAlerts = text(PackageResources.TakeAlerts_sql)
    static let settleAlerts = text(PackageResources.SettleAlerts_sql)
    static let releaseAlerts = text(PackageResources.ReleaseAlerts_sql)
    static let nextAlert = text(PackageResources.NextAlert_sql)
    static let holdAlerts = text(PackageResources.HoldAlerts_sql)
    static let usersWaitedFor = text(PackageResources.UsersWaitedFor_sql)
    static let unansweredAlerts = text(PackageResources.UnansweredAlerts_sql)
    static let pruneAlerts = text(PackageResources.PruneAlerts_sql)
    static let noteDelivered = text(PackageResources.NoteDelivered_sql)
    static let giveBackAlerts = text(PackageResources.GiveBackAlerts_sql)
    static let factsTurn = text(PackageResources.FactsTurn_sql)
    static let factsOfSampleChat = text(PackageResources.FactsOfSampleChat_sql)
    static let bearerOfActivity = text(PackageResources.BearerOfActivity_sql)
    static let pruneActivities = text(PackageResources.PruneActivities_sql)
    static let rolesOutOfReach = text(PackageResources.RolesOutOfReach_sql)
    static let tablesWithoutPolicy = text(PackageResources.TablesWithoutPolicy_sql)
    static let triggerFaults = CatalogSQL.triggerFaults.text
    static let unwatchedChanges = text(PackageResources.UnwatchedChanges_sql)
    static let outboxState = text(PackageResources.OutboxState_sql)
    static let connections = text(PackageResources.Connections_sql)
    static let longTransactions = text(PackageResources.LongTransactions_sql)
    static let standbys = text(PackageResources.Standbys_sql)
    static let idleSlots = text(PackageResources.IdleSlots_sql)
    static let hubSessions = FeedSQL.hubSessions.text
    static let nodes = text(PackageResources.Nodes_sql)
    static let lockHolder = text(PackageResources.LockHolder_sql)
    static let sessionWait = text(PackageResources.SessionWait_sql)

    /// In order; the version of the schema is their count.
    static let migrations: [(name: String, sql: String)] = [
        ("001 outbox", text(PackageResources.Migration001Outbox_sql)),
        ("002 triggers", text(PackageResources.Migration002Triggers_sql)),
        ("003 messages", text(PackageResources.Migration003Messages_sql)),
        ("004 scopes", text(PackageResources.Migration004Scopes_sql)),
        ("005 recovery", text(PackageResources.Migration005Recovery_sql)),
        ("006 ring", text(PackageResources.Migration006Ring_sql)),
        ("007 presence", text(PackageResources.Migration007Presence_sql)),
        ("008 push", text(PackageResources.Migration008Push_sql)),
        ("009 sessions", text(PackageResources.Migration009Sessions_sql)),
        ("010 epochs", text(PackageResources.Migration010Epochs_sql)),
        ("011 rows", text(PackageResources.Migration011Rows_sql)),
        ("012 losses", text(PackageResources.Migration012Losses_sql)),
        ("013 order", text(PackageResources.Migration013Order_sql)),
    ]

    /// What `roost migrate` creates outside its own schema where it is missing; they run after the migrations, each time.
    static let installations: [(name: String, sql: String)] = [
        ("realtime", text(PackageResources.InstallRealtime_sql)),
        ("trigger on realtime.messages", text(PackageResources.InstallMessageTrigger_sql)),
        ("claims", text(PackageResources.InstallClaims_sql)),
    ]

    private static func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
}
