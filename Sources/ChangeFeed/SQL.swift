/// The statements of this room, embedded from `SQL/`.
enum SQL {
    static let sessionOfFeed = text(PackageResources.SessionOfFeed_sql)
    static let sessionOfConditions = text(PackageResources.SessionOfConditions_sql)
    static let catalog = text(PackageResources.Catalog_sql)
    static let catalogVersion = text(PackageResources.CatalogVersion_sql)
    static let access = text(PackageResources.Access_sql)
    static let membersInWindow = text(PackageResources.MembersInWindow_sql)
    static let window = text(PackageResources.Window_sql)
    static let prune = text(PackageResources.Prune_sql)
    static let register = text(PackageResources.Register_sql)
    static let doorbellGranted = text(PackageResources.DoorbellGranted_sql)
    static let notificationQueue = text(PackageResources.NotificationQueue_sql)
    static let position = text(PackageResources.Position_sql)
    static let outbox = text(PackageResources.Outbox_sql)
    static let epochs = text(PackageResources.Epochs_sql)
    static let makeEpoch = text(PackageResources.MakeEpoch_sql)
    static let mendEpoch = text(PackageResources.MendEpoch_sql)
    static let pruneEpochs = text(PackageResources.PruneEpochs_sql)
    static let serverRun = text(PackageResources.ServerRun_sql)
    static let newIncarnation = text(PackageResources.NewIncarnation_sql)
    static let foreignChanges = text(PackageResources.ForeignChanges_sql)
    static let silentWriters = text(PackageResources.SilentWriters_sql)
    static let recoveryGround = text(PackageResources.RecoveryGround_sql)
    static let recoverySlice = text(PackageResources.RecoverySlice_sql)
    static let recoveryStored = text(PackageResources.RecoveryStored_sql)
    static let recoveryWindow = text(PackageResources.RecoveryWindow_sql)
    static let storeCursor = text(PackageResources.StoreCursor_sql)
    static let schemaVersion = text(PackageResources.SchemaVersion_sql)
    static let schemaExists = text(PackageResources.SchemaExists_sql)
    static let describeTable = text(PackageResources.DescribeTable_sql)
    static let watchTable = text(PackageResources.WatchTable_sql)
    static let unwatchTable = text(PackageResources.UnwatchTable_sql)
    static let publicationTables = text(PackageResources.PublicationTables_sql)
    static let findTable = text(PackageResources.FindTable_sql)
    static let rights = text(PackageResources.Rights_sql)
    static let sessionOfAuthority = text(PackageResources.SessionOfAuthority_sql)
    static let messagesTable = text(PackageResources.MessagesTable_sql)
    static let messagesReader = text(PackageResources.MessagesReader_sql)
    static let replay = text(PackageResources.Replay_sql)
    static let policySession = text(PackageResources.PolicySession_sql)
    static let policyDescription = text(PackageResources.PolicyDescription_sql)
    static let policyFunction = text(PackageResources.PolicyFunction_sql)
    static let policyBody = text(PackageResources.PolicyBody_sql)
    static let policyStored = text(PackageResources.PolicyStored_sql)
    static let scopes = text(PackageResources.Scopes_sql)
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
    static let triggerFaults = text(PackageResources.TriggerFaults_sql)
    static let unwatchedChanges = text(PackageResources.UnwatchedChanges_sql)
    static let outboxState = text(PackageResources.OutboxState_sql)
    static let connections = text(PackageResources.Connections_sql)
    static let longTransactions = text(PackageResources.LongTransactions_sql)
    static let standbys = text(PackageResources.Standbys_sql)
    static let idleSlots = text(PackageResources.IdleSlots_sql)
    static let claimNode = text(PackageResources.ClaimNode_sql)
    static let hubSessions = text(PackageResources.HubSessions_sql)
    static let nodes = text(PackageResources.Nodes_sql)
    static let sessionOfSessions = text(PackageResources.SessionOfSessions_sql)
    static let storeSessions = text(PackageResources.StoreSessions_sql)
    static let forgetSessions = text(PackageResources.ForgetSessions_sql)
    static let storedSessions = text(PackageResources.StoredSessions_sql)
    static let sessionsAreListed = text(PackageResources.SessionsAreListed_sql)
    static let sessionsAreUnknown = text(PackageResources.SessionsAreUnknown_sql)
    static let listTurn = text(PackageResources.ListTurn_sql)
    static let withdrawList = text(PackageResources.WithdrawList_sql)
    static let outboxLook = text(PackageResources.OutboxLook_sql)
    static let noteEmptied = text(PackageResources.NoteEmptied_sql)
    static let latestRead = text(PackageResources.LatestRead_sql)
    static let hasChangeOf = text(PackageResources.HasChangeOf_sql)
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
