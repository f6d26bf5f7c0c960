/// The table of all settings, in the order of `config/roost.yaml`, and the settings of the hub as a whole: addresses,
/// tokens, the feed, the log.
extension Setting {
    package static let all: [Setting] = [
        databaseURL, nodeName, clusterURL, clusterName, clusterCAFile, clusterLogBytes, httpHost, httpPort, httpSocket,
        httpSocketMode, httpOrigins, httpTokenCookie,
        trustedProxies, tlsCertificate, tlsKey, opsHost, opsPort, opsToken, jwtSecret, jwtPreviousSecrets,
        jwtAlgorithms, jwtIssuer, jwtAudience, jwksFile, jwksURL, loops, ioUring,
        connections, connectionsPerAddress, connectionsPerUser, channelsPerConnection, filtersPerChannel,
        patternsPerConnection, undecidedFilters, regularExpressions,
        joinsPerSecond, presencePerSecond, messagesPerSecond, bytesPerSecond,
        messageBytes, payloadBytes, presenceBytes, pendingBytesPerSocket, unfinishedBytes, requestsPerUser,
        failuresPerMinute,
        privateOnly,
        historyMessages, historySeconds, historyBytesPerChannel, historyBytes,
        graceActive, graceInactive, graceBackground, graceTopics, restartSeconds, mergeMilliseconds,
        listedMembers, listedBytes, totalListedBytes, typingEnabled, typingShown, typingEndedBy, usersStatement,
        apnsTopic, apnsTeam, apnsKeyID, apnsPrivateKey, apnsEnvironment, apnsURL, apnsSandboxURL, apnsCAFile, apnsQueue,
        fcmServiceAccount, fcmChannel, fcmDataOnly, fcmURL, fcmCAFile,
        webPushPrivateKey, webPushSubject, webPushNetworks, webPushCAFile,
        activityTopic, activityState, activityFacts, activityRefresh, activityPreview, activityDebounce,
        activityCeiling, activityStale,
        activityHours,
        alertTables, alertTimed, alertAudience, alertTokens, alertTemplates, alertTitle, alertBody, alertTitleKey,
        alertTitleArguments, alertBodyKey, alertBodyArguments, alertSound, alertHours, alertWhen, alertDevices,
        alertProofSeconds,
        alertReadPosition, alertReadUser, alertReadConversation, alertReadMessage, alertBadge, alertBadgesPerMinute,
        receiptsStatement, receiptsTables,
        pingAfter, idleTimeout, bodyTimeout, tokenGrace, feedCapture, recoveryWindowSeconds, sessionsPerUser,
        retentionHours, policySessions, safetyPollSeconds, readyLagSeconds, feedRequired, notifyChannels, webhooksURL,
        webhooksSecret, webhooksQueue,
        streamsDirectory, streamsSync, streamsOnClose, streamsCloseWithin, streamsRoutes, streamsForwardSecret,
        streamsForwardTimeout, streamsForwardError, streamsBounds, streamBytes, streamBinaryBytes, streamTotalBytes,
        streamCount, streamBytesPerUser, streamCountPerUser,
        streamKeepAfterEnd, streamStalledAfter, streamAbortedAfter, streamAbandonedAfter, logLevel, logFormat,
        drainDelaySeconds, drainSeconds,
    ]

    static let databaseURL = Setting(
        "database.url", .connection, standard: nil, isSecret: true,
        "The database to follow, as libpq understands it. Connect to Postgres directly, not through a pooler: the hub "
            + "listens for notifications and keeps its session.")

    static let nodeName = Setting(
        "node.name", .name, standard: .text("roost"),
        "This hub's name in the database, under which its place in the feed is kept. Two hubs on one database need two "
            + "names; a hub with a new name starts at the present.")

    static let clusterURL = Setting(
        "cluster.url", .redisURL, standard: nil, isSecret: true,
        "Redis or Valkey, through which several hubs act as one: what is sent to one of them reaches the clients of "
            + "all. Each hub needs a node.name of its own. When it is not set, the hub works alone.")

    static let clusterName = Setting(
        "cluster.name", .name, standard: .text("roost"),
        "What the cluster is called in Redis: hubs with the same name act as one. Two clusters on one Redis need two names."
    )

    static let clusterCAFile = Setting(
        "cluster.ca_file", .path, standard: nil,
        "The certificate authorities that Redis' certificate is checked against, for rediss://. When it is not set, "
            + "the system's."
    )

    static let clusterLogBytes = Setting(
        "cluster.log_bytes", .integer(1_048_576...17_179_869_184), standard: .integer(67_108_864), unit: "bytes",
        "About how much the log of the last messages may take in Redis: a hub that was cut off reads from it what it "
            + "missed. It never keeps more than 60000 entries. Give all hubs the same value.")

    static let httpHost = Setting(
        "http.host", .host, standard: .text("127.0.0.1"),
        "The address that clients connect to. Loopback suits a TLS proxy on the same machine; 0.0.0.0 is every address."
    )

    static let httpPort = Setting(
        "http.port", .integer(1...65_535), standard: .integer(4000),
        "The port of the WebSocket and of the HTTP API.")

    static let httpSocket = Setting(
        "http.socket", .path, standard: nil,
        "A Unix domain socket to listen on as well, for a proxy on the same machine. It speaks plain HTTP, with or "
            + "without tls. The file is made at the start and removed at the end.")

    static let httpSocketMode = Setting(
        "http.socket_mode", .mode, standard: .text("0660"),
        "The permissions of that file, in octal: whoever may write to it may connect.")

    static let httpOrigins = Setting(
        "http.origins", .origins, standard: nil, isReloaded: true,
        "The web pages that may use the hub, by their origins, with commas between them; * stands for subdomains. "
            + "Whatever pages of other origins ask for is refused with HTTP 403; the hub's own origin need not be named. "
            + "When it is not set, all pages may use it: the token is what protects the hub. Programs other than "
            + "browsers name no origin and are let in.")

    static let httpTokenCookie = Setting(
        "http.token_cookie", .name, standard: nil, isReloaded: true,
        "The cookie in which your application keeps its user's token: a browser's EventSource sends cookies but no "
            + "headers. It counts for events only (/api/sse), from pages of the hub's own origin or of one in "
            + "http.origins. When it is not set, no cookie counts.")

    static let trustedProxies = Setting(
        "http.trusted_proxies", .networks, standard: nil, isReloaded: true,
        "The proxies whose X-Forwarded-For is believed: addresses, networks, or unix for whoever may open http.socket, "
            + "with commas between them. Limits by address, and addresses that keep failing, then go by the client's "
            + "address. From all others the header is ignored.")

    static let tlsCertificate = Setting(
        "tls.certificate", .path, standard: nil,
        "A PEM file with the certificate of this server, followed by its chain: the port then speaks TLS (wss, https) "
            + "and nothing else. The file is read again when it changes; sockets stay open.")

    static let tlsKey = Setting(
        "tls.key", .path, standard: nil,
        "A PEM file with the certificate's private key, without a password.")

    static let opsHost = Setting(
        "ops.host", .host, standard: .text("127.0.0.1"),
        "The address of the operator's pages. On loopback, everybody on the machine may use them; on another address "
            + "the live page requires ops.token, and without one there are only figures and health.")

    static let opsPort = Setting(
        "ops.port", .integer(0...65_535), standard: .integer(4001),
        "The port of the live page, /metrics, /livez, /readyz and /healthz; 0 turns them off.")

    static let opsToken = Setting(
        "ops.token", .secret(minimumBytes: 32), standard: nil, isSecret: true,
        "To use the live page or read /metrics, you have to send this, whatever the address: as `Authorization: Bearer "
            + "TOKEN`, or as `?token=TOKEN` in the page's address. /livez, /readyz and /healthz never ask.")

    static let jwtSecret = Setting(
        "jwt.secret", .secret(minimumBytes: 32), standard: nil, isSecret: true, isReloaded: true,
        "The secret that clients' tokens are signed with (HS256, HS384, HS512); for a Supabase project it is the JWT "
            + "secret. `roost serve` needs it or a key set (jwks). It is safer in the environment than in a file.")

    static let jwtPreviousSecrets = Setting(
        "jwt.previous_secrets", .secrets(minimumBytes: 32), standard: nil, isSecret: true, isReloaded: true,
        "Secrets that were in use before, separated by spaces: tokens signed with them are accepted as well until you "
            + "remove them.")

    static let jwtAlgorithms = Setting(
        "jwt.algorithms", .words(from: signatureAlgorithms), standard: nil, isReloaded: true,
        "The algorithms with which a token may be signed, separated by commas; when it is not set, all that the keys "
            + "allow.")

    static let jwtIssuer = Setting(
        "jwt.issuer", .words(from: nil), standard: nil, isReloaded: true,
        "The accepted values of the claim `iss`, separated by commas; when it is not set, any.")

    static let jwtAudience = Setting(
        "jwt.audience", .words(from: nil), standard: nil, isReloaded: true,
        "The accepted values of the claim `aud`, separated by commas; a token has to name one of them. When it is not "
            + "set, any.")

    static let jwksFile = Setting(
        "jwks.file", .path, standard: nil, isReloaded: true,
        "A file with a JWK Set: the public keys of the services that sign the tokens. It is read again when it changes."
    )

    static let jwksURL = Setting(
        "jwks.url", .webURL, standard: nil, isSecret: true, isReloaded: true,
        "The URL from which a JWK Set is fetched: at the start, every five minutes, and when a token names an unknown "
            + "key. For a Supabase project it is https://PROJECT.supabase.co/auth/v1/.well-known/jwks.json.")

    /// RFC 7518, section 3.1, and RFC 8037, without `none`.
    private static let signatureAlgorithms = [
        "HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512",
        "EdDSA",
    ]

    static let loops = Setting(
        "loops", .integer(0...1024), standard: .integer(0), unit: "threads",
        "Event loops, one thread each; 0 means one for each core.")

    static let ioUring = Setting(
        "io_uring", .toggle, standard: .toggle(true),
        "Send a broadcast to many sockets with one system call (io_uring). If the kernel or a container forbids it, "
            + "every socket takes a system call of its own, whatever this says.")

    static let pingAfter = Setting(
        "timeouts.ping_after", .integer(1...3600), standard: .integer(25), unit: "seconds", isReloaded: true,
        "How long a socket may be silent before it is sent a ping.")

    static let idleTimeout = Setting(
        "timeouts.idle", .integer(2...86_400), standard: .integer(60), unit: "seconds", isReloaded: true,
        "How long a socket may be silent, pings included, before it is closed. Clients send a heartbeat every 25 "
            + "seconds.")

    static let bodyTimeout = Setting(
        "timeouts.body", .integer(1...3600), standard: .integer(30), unit: "seconds", isReloaded: true,
        "How long the body of an HTTP request may take to arrive; one that takes longer is answered with HTTP 408.")

    static let tokenGrace = Setting(
        "timeouts.token_grace", .integer(0...3600), standard: .integer(30), unit: "seconds", isReloaded: true,
        "How long a channel whose token has expired waits for a fresh one before it ends; meanwhile it receives and "
            + "sends nothing. 0: it ends at once.")

    static let feedCapture = Setting(
        "feed.capture", .choice(["triggers", "wal"]), standard: .text("triggers"),
        "How changes get into the outbox, for tables that are watched from now on. triggers: the statement that writes "
            + "a row also writes its change; needs nothing else. wal: the hub reads Postgres' log, without triggers; "
            + "needs wal_level = logical and a role that may replicate. docs/capture.md says how to choose and how to "
            + "switch.")

    static let recoveryWindowSeconds = Setting(
        "feed.recovery_window_seconds", .integer(0...3600), standard: .integer(120), unit: "seconds",
        "How long a client that was cut off, or that the hub itself left behind, may take to join again and still be "
            + "sent every change that it missed, without sending a cursor; 0 leaves that to clients that send one.")

    static let sessionsPerUser = Setting(
        "feed.sessions_per_user", .integer(1...1_000_000), standard: .integer(1000), unit: "sessions",
        "How many channels with row changes that ended without a good-bye are remembered of one user, for that time. With "
            + "more the oldest of that user give way, and its clients are sent more than they missed. Tokens without "
            + "`sub` count together, by their role, and may have twenty times as many.")

    static let retentionHours = Setting(
        "feed.retention_hours", .integer(1...8760), standard: .integer(24), unit: "hours",
        "How long changes stay in the outbox table: the hub can be away for this long and still deliver everything.")

    static let policySessions = Setting(
        "feed.policy_sessions", .integer(1...16), standard: .integer(2),
        "How many Postgres sessions ask policies at once about a row that many users wait for. More help if Postgres "
            + "has cores to spare; the second is opened with the first such row.")

    static let safetyPollSeconds = Setting(
        "feed.safety_poll_seconds", .integer(1...3600), standard: .integer(3), unit: "seconds",
        "How often the hub looks for changes without a notification, and whether the tables are still captured. It costs "
            + "next to nothing, covers notifications that were lost with a connection, and bounds how late clients are told "
            + "that the capture of a table was interrupted.")

    static let readyLagSeconds = Setting(
        "feed.ready_lag_seconds", .integer(1...3600), standard: .integer(30), unit: "seconds",
        "How far changes may be behind the database, beyond feed.safety_poll_seconds, before /readyz says 503.")

    static let feedRequired = Setting(
        "feed.required", .toggle, standard: .toggle(true),
        "Whether new sockets are refused with HTTP 503 while the hub cannot serve row changes: at its start, and while "
            + "Postgres is away. Some clients never come back from a join that is refused, and all of them from a "
            + "connection that is. false is for clients that use no row changes: they are let in, and /readyz says that "
            + "the hub is degraded.")

    static let notifyChannels = Setting(
        "notify.channels", .mappings, standard: nil,
        "Channels of Postgres (NOTIFY) whose notifications become broadcasts, with commas or line breaks between them: "
            + "CHANNEL -> TOPIC / EVENT, where {field} stands for a field of the JSON payload. Members of the private "
            + "channel get them; with the word public before the topic, members of the public one. docs/notify.md has "
            + "more.")

    static let webhooksURL = Setting(
        "webhooks.url", .webURL, standard: nil, isSecret: true,
        "The URL to which the hub sends what happens on it: channels that get members and lose them, who is present, "
            + "who is connected. docs/webhooks.md has the messages.")

    static let webhooksSecret = Setting(
        "webhooks.secret", .secret(minimumBytes: 24), standard: nil, isSecret: true,
        "The key that messages to webhooks.url are signed with, as in Standard Webhooks: whsec_ and the base64 of 24 "
            + "to 64 random bytes.")

    static let webhooksQueue = Setting(
        "webhooks.queue", .integer(100...1_000_000), standard: .integer(20_000), unit: "events",
        "How many events may wait in memory while webhooks.url takes none. Events beyond that are dropped; their "
            + "number is sent.")

    static let logLevel = Setting(
        "log.level", .choice(["trace", "debug", "info", "notice", "warning", "error", "critical"]),
        standard: .text("info"), isReloaded: true,
        "How much is logged to standard error: trace, debug, info, notice, warning, error or critical.")

    static let logFormat = Setting(
        "log.format", .choice(["text", "json"]), standard: .text("text"), isReloaded: true,
        "How a line of the log is written: text for people, json for programs, one object per line.")

    static let drainDelaySeconds = Setting(
        "drain.delay_seconds", .integer(0...600), standard: .integer(0), unit: "seconds", isReloaded: true,
        "On SIGTERM /readyz fails at once; the drain begins this much later, so that a load balancer notices first.")

    static let drainSeconds = Setting(
        "drain.seconds", .integer(0...600), standard: .integer(10), unit: "seconds", isReloaded: true,
        "On SIGTERM the sockets are closed in batches over this time, so that a deploy is not a stampede of reconnects."
    )
}
