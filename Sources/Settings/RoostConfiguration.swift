/// All effective values with their origins. `load` creates one.
package struct RoostConfiguration: Sendable {
    /// Nil if not set. Commands that need it call `requireDatabaseURL`.
    package let databaseURL: String?
    package let nodeName: String
    package let cluster: ClusterSettings

    package let httpHost: String
    package let httpPort: Int
    /// Nil: no Unix domain socket.
    package let httpSocket: String?
    /// The permissions of the socket's file.
    package let httpSocketMode: Int
    /// Empty: pages of all origins may connect.
    package let httpOrigins: [String]
    package let httpTokenCookie: String?
    /// Addresses, networks in CIDR notation, `unix`.
    package let trustedProxies: [String]
    /// Paths of PEM files; both or neither.
    package let tlsCertificate: String?
    package let tlsKey: String?
    package let opsHost: String
    /// Nil: no operator's port.
    package let opsPort: Int?
    /// Nil: the operator's pages need no token.
    package let opsToken: String?

    /// Nil if not set. Commands that need it call `requireJWTSecret`.
    package let jwtSecret: String?
    package let jwtPreviousSecrets: [String]
    /// Names of RFC 7518; empty: all.
    package let jwtAlgorithms: [String]
    /// Empty: any.
    package let jwtIssuers: [String]
    /// Empty: any.
    package let jwtAudiences: [String]
    package let jwksFile: String?
    package let jwksURL: String?

    /// The number of event loops; a setting of 0 is already replaced by the number of cores.
    package let loops: Int
    package let ioUring: Bool

    /// Zero: as many as the limit of open files allows.
    package let connections: Int
    /// Zero: no limit.
    package let connectionsPerAddress: Int
    /// Zero: no limit.
    package let connectionsPerUser: Int
    package let channelsPerConnection: Int
    package let filtersPerChannel: Int
    package let patternsPerConnection: Int
    package let undecidedFilters: Int
    package let regularExpressions: Bool
    /// Zero: no limit.
    package let joinsPerSecond: Int
    /// Zero: no limit.
    package let presencePerSecond: Int
    /// Zero: no limit.
    package let messagesPerSecond: Int
    /// Zero: no limit.
    package let bytesPerSecond: Int
    /// Zero: no history is kept.
    package let historyMessages: Int
    package let historySeconds: Int
    package let historyBytesPerChannel: Int
    package let historyBytes: Int
    package let messageBytes: Int
    package let payloadBytes: Int
    package let presenceBytes: Int
    package let pendingBytesPerSocket: Int
    package let unfinishedBytes: Int
    /// Zero: connections are never delayed.
    package let failuresPerMinute: Int
    /// Zero: no limit.
    package let requestsPerUser: Int
    package let privateOnly: Bool

    /// Seconds.
    package let graceActive: Int
    /// Seconds.
    package let graceInactive: Int
    /// Seconds.
    package let graceBackground: Int
    /// The first that matches a topic counts.
    package let graceTopics: [TopicWindows]
    package let restartSeconds: Int
    /// Zero: each presence change is sent by itself.
    package let mergeMilliseconds: Int
    package let listedMembers: Int
    package let listedBytes: Int
    package let totalListedBytes: Int
    package let typingEnabled: Bool
    package let typingShown: Int
    /// `SCHEMA.TABLE.COLUMN`.
    package let typingEndedBy: [String]
    /// Nil: the users' status is not recorded.
    package let usersStatement: String?

    package let push: PushSettings
    package var webPush: WebPushSettings

    /// Seconds.
    package let pingAfter: Int
    /// Seconds.
    package let idleTimeout: Int
    /// Seconds.
    package let bodyTimeout: Int
    /// Seconds.
    package let tokenGrace: Int

    /// `feed.capture`: whether tables are read from the WAL rather than by triggers.
    package let capturesFromWAL: Bool
    /// Zero: missed changes are sent only to clients with a cursor.
    package let recoveryWindowSeconds: Int
    package let sessionsPerUser: Int
    package let retentionHours: Int
    package let policySessions: Int
    package let safetyPollSeconds: Int
    package let readyLagSeconds: Int
    /// `feed.required`: sockets are refused while row changes cannot be served.
    package let requiresFeed: Bool
    /// Nil: no channels.
    package let notifyChannels: String?
    package let webhooks: WebhookSettings
    package let streams: StreamSettings

    /// One of swift-log's level names.
    package let logLevel: String
    /// `text` or `json`.
    package let logFormat: String
    package let drainDelaySeconds: Int
    package let drainSeconds: Int

    /// The file that was read, if any.
    package let file: String?
    /// Every setting in the order of the table, with its origin.
    package let values: [EffectiveValue]
    /// Warnings that do not prevent a start, one sentence each; they contain no values of variables.
    package let warnings: [String]

    init(
        values: EffectiveValues, file: String?, cores: Int, warnings: [String] = []
    ) throws(ConfigurationError) {
        databaseURL = values.text(.databaseURL)
        nodeName = values.requiredText(.nodeName)
        cluster = ClusterSettings(values)
        httpHost = values.requiredText(.httpHost)
        httpPort = values.integer(.httpPort)
        httpSocket = values.text(.httpSocket)
        httpSocketMode = Int(values.requiredText(.httpSocketMode), radix: 8) ?? 0o660
        httpOrigins = values.words(.httpOrigins)
        httpTokenCookie = values.text(.httpTokenCookie)
        trustedProxies = values.words(.trustedProxies)
        tlsCertificate = values.text(.tlsCertificate)
        tlsKey = values.text(.tlsKey)
        opsHost = values.requiredText(.opsHost)
        opsPort = values.integer(.opsPort) == 0 ? nil : values.integer(.opsPort)
        opsToken = values.text(.opsToken)
        jwtSecret = values.text(.jwtSecret)
        jwtPreviousSecrets = values.words(.jwtPreviousSecrets, separators: "")
        jwtAlgorithms = values.words(.jwtAlgorithms)
        jwtIssuers = values.words(.jwtIssuer)
        jwtAudiences = values.words(.jwtAudience)
        jwksFile = values.text(.jwksFile)
        jwksURL = values.text(.jwksURL)
        ioUring = values.toggle(.ioUring)
        loops = values.integer(.loops) == 0 ? max(1, cores) : values.integer(.loops)
        connections = values.integer(.connections)
        connectionsPerAddress = values.integer(.connectionsPerAddress)
        connectionsPerUser = values.integer(.connectionsPerUser)
        channelsPerConnection = values.integer(.channelsPerConnection)
        filtersPerChannel = values.integer(.filtersPerChannel)
        patternsPerConnection = values.integer(.patternsPerConnection)
        undecidedFilters = values.integer(.undecidedFilters)
        regularExpressions = values.toggle(.regularExpressions)
        joinsPerSecond = values.integer(.joinsPerSecond)
        presencePerSecond = values.integer(.presencePerSecond)
        messagesPerSecond = values.integer(.messagesPerSecond)
        bytesPerSecond = values.integer(.bytesPerSecond)
        historyMessages = values.integer(.historyMessages)
        historySeconds = values.integer(.historySeconds)
        historyBytesPerChannel = values.integer(.historyBytesPerChannel)
        historyBytes = values.integer(.historyBytes)
        messageBytes = values.integer(.messageBytes)
        payloadBytes = values.integer(.payloadBytes)
        presenceBytes = values.integer(.presenceBytes)
        pendingBytesPerSocket = values.integer(.pendingBytesPerSocket)
        unfinishedBytes = values.integer(.unfinishedBytes)
        failuresPerMinute = values.integer(.failuresPerMinute)
        requestsPerUser = values.integer(.requestsPerUser)
        privateOnly = values.toggle(.privateOnly)
        graceActive = values.integer(.graceActive)
        graceInactive = values.integer(.graceInactive)
        graceBackground = values.integer(.graceBackground)
        graceTopics = values.words(.graceTopics).compactMap { TopicWindows($0) }
        restartSeconds = values.integer(.restartSeconds)
        mergeMilliseconds = values.integer(.mergeMilliseconds)
        listedMembers = values.integer(.listedMembers)
        listedBytes = values.integer(.listedBytes)
        totalListedBytes = values.integer(.totalListedBytes)
        typingEnabled = values.toggle(.typingEnabled)
        typingShown = values.integer(.typingShown)
        typingEndedBy = values.words(.typingEndedBy)
        usersStatement = values.text(.usersStatement)
        push = try PushSettings(values)
        webPush = WebPushSettings(values)
        pingAfter = values.integer(.pingAfter)
        idleTimeout = values.integer(.idleTimeout)
        tokenGrace = values.integer(.tokenGrace)
        bodyTimeout = values.integer(.bodyTimeout)
        capturesFromWAL = values.requiredText(.feedCapture) == "wal"
        recoveryWindowSeconds = values.integer(.recoveryWindowSeconds)
        sessionsPerUser = values.integer(.sessionsPerUser)
        retentionHours = values.integer(.retentionHours)
        policySessions = values.integer(.policySessions)
        requiresFeed = values.toggle(.feedRequired)
        safetyPollSeconds = values.integer(.safetyPollSeconds)
        readyLagSeconds = values.integer(.readyLagSeconds)
        notifyChannels = values.text(.notifyChannels)
        webhooks = WebhookSettings(values)
        streams = StreamSettings(values)
        logLevel = values.requiredText(.logLevel)
        logFormat = values.requiredText(.logFormat)
        drainDelaySeconds = values.integer(.drainDelaySeconds)
        drainSeconds = values.integer(.drainSeconds)
        self.file = file
        self.values = values.ordered
        self.warnings = warnings
        try Self.checkTogether(values)
    }
}
