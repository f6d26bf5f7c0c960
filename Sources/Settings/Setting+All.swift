/// The table of all settings, in the order of `config/roost.yaml`.
extension Setting {
    package static let all: [Setting] = [
        databaseURL, nodeName, httpHost, httpPort, httpSocket, httpSocketMode, httpOrigins, trustedProxies,
        tlsCertificate, tlsKey, opsHost, opsPort, opsToken, jwtSecret, jwtPreviousSecrets,
        jwtAlgorithms, jwtIssuer, jwtAudience, jwksFile, jwksURL, loops, ioUring,
        connections, connectionsPerAddress, connectionsPerUser, channelsPerConnection, filtersPerChannel,
        patternsPerConnection, undecidedFilters, regularExpressions,
        joinsPerSecond, presencePerSecond, messagesPerSecond, bytesPerSecond,
        messageBytes, payloadBytes, presenceBytes, pendingBytesPerSocket, unfinishedBytes, failuresPerMinute,
        privateOnly,
        historyMessages, historySeconds, historyBytesPerChannel, historyBytes,
        graceActive, graceInactive, graceBackground, graceTopics, restartSeconds, mergeMilliseconds,
        listedMembers, listedBytes, totalListedBytes, typingEnabled, typingShown, typingEndedBy, usersStatement,
        apnsTopic, apnsTeam, apnsKeyID, apnsPrivateKey, apnsEnvironment, apnsURL, apnsCAFile, apnsQueue,
        activityTopic, activityState, activityFacts, activityRefresh, activityPreview, activityDebounce,
        activityCeiling, activityStale,
        activityHours,
        alertTables, alertAudience, alertTitle, alertBody, alertTitleKey, alertTitleArguments, alertBodyKey,
        alertBodyArguments, alertSound, alertHours,
        pingAfter, idleTimeout, bodyTimeout, recoveryWindowSeconds, retentionHours,
        safetyPollSeconds, readyLagSeconds, logLevel, logFormat, drainDelaySeconds, drainSeconds,
    ]

    static let databaseURL = Setting(
        "database.url", .connection, standard: nil, isSecret: true,
        "The database to follow, as libpq understands it. Connect to Postgres itself and not through a pooler: the hub "
            + "listens for notifications and keeps its session.")

    static let nodeName = Setting(
        "node.name", .name, standard: .text("roost"),
        "This hub's name in the database, under which its place in the feed is kept. Two hubs on one database need two "
            + "names; a hub that gets a new name starts at the present.")

    static let opsHost = Setting(
        "ops.host", .host, standard: .text("127.0.0.1"),
        "The address of the operator's pages. On loopback, everybody on the machine may use them; on another address the "
            + "live page takes ops.token, and without one there are only figures and health.")

    static let opsPort = Setting(
        "ops.port", .integer(0...65_535), standard: .integer(4001),
        "The port of the live page, /metrics, /livez, /readyz and /healthz; 0 turns them off.")

    static let opsToken = Setting(
        "ops.token", .secret(minimumBytes: 32), standard: nil, isSecret: true,
        "Who uses the live page or reads /metrics has to show this, wherever the port is: as `Authorization: Bearer TOKEN`, "
            + "or as `?token=TOKEN` in the page's address. /livez, /readyz and /healthz never ask.")

    static let jwtSecret = Setting(
        "jwt.secret", .secret(minimumBytes: 32), standard: nil, isSecret: true, isReloaded: true,
        "The secret that clients' tokens are signed with (HS256, HS384, HS512); of a Supabase project it is the JWT "
            + "secret. `roost serve` needs it or a key set (jwks). Better in the environment than in a file.")

    static let jwtPreviousSecrets = Setting(
        "jwt.previous_secrets", .secrets(minimumBytes: 32), standard: nil, isSecret: true, isReloaded: true,
        "Secrets that were in use before, separated by spaces: tokens signed with them are accepted, too, until you "
            + "take them away.")

    static let jwtAlgorithms = Setting(
        "jwt.algorithms", .words(from: signatureAlgorithms), standard: nil, isReloaded: true,
        "The only ways a token may be signed, separated by commas; when it is not set, all that the keys allow.")

    static let jwtIssuer = Setting(
        "jwt.issuer", .words(from: nil), standard: nil, isReloaded: true,
        "The accepted values of the claim `iss`, separated by commas; when it is not set, any.")

    static let jwtAudience = Setting(
        "jwt.audience", .words(from: nil), standard: nil, isReloaded: true,
        "The accepted values of the claim `aud`, separated by commas; a token has to name one of them. When it is not "
            + "set, any.")

    static let jwksFile = Setting(
        "jwks.file", .path, standard: nil, isReloaded: true,
        "A file with a JWK Set: the public keys of whoever signs the tokens. It is read again when it changes.")

    static let jwksURL = Setting(
        "jwks.url", .webURL, standard: nil, isSecret: true, isReloaded: true,
        "Where a JWK Set is fetched: at the start, every five minutes, and when a token names a key that is not known. "
            + "Of a Supabase project it is https://PROJECT.supabase.co/auth/v1/.well-known/jwks.json.")

    /// RFC 7518, section 3.1, and RFC 8037; `none` is not among them.
    private static let signatureAlgorithms = [
        "HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512",
        "EdDSA",
    ]

    static let loops = Setting(
        "loops", .integer(0...1024), standard: .integer(0), unit: "threads",
        "Event loops, one thread each; 0 means one for each core.")

    static let ioUring = Setting(
        "io_uring", .toggle, standard: .toggle(true),
        "Send a broadcast to many sockets by one system call (io_uring). Where the kernel or a container forbids it, every "
            + "socket takes a system call of its own, whatever this says.")

    static let channelsPerConnection = Setting(
        "limits.channels_per_connection", .integer(1...100_000), standard: .integer(100), unit: "channels",
        isReloaded: true,
        "How many channels one socket may join; a join beyond that is refused.")

    static let messageBytes = Setting(
        "limits.message_bytes", .integer(1024...268_435_456), standard: .integer(5_000_000), unit: "bytes",
        isReloaded: true,
        "The largest message a client may send; a larger one closes its socket with code 1009.")

    static let payloadBytes = Setting(
        "limits.payload_bytes", .integer(256...268_435_456), standard: .integer(3_000_000), unit: "bytes",
        isReloaded: true,
        "The largest payload of one broadcast or presence; a larger one is answered with an error. Python clients "
            + "take no message over 1 MiB.")

    static let pendingBytesPerSocket = Setting(
        "limits.pending_bytes_per_socket", .integer(16_384...1_073_741_824), standard: .integer(1_048_576),
        unit: "bytes", isReloaded: true,
        "What may wait for a reader that is slower than its channels. At the cap the socket is cut off, "
            + "so that the client reconnects; the hub's memory never grows with a slow reader.")

    static let unfinishedBytes = Setting(
        "limits.unfinished_bytes", .integer(1_048_576...68_719_476_736), standard: .integer(67_108_864), unit: "bytes",
        isReloaded: true,
        "How much all clients together may have sent of messages and HTTP requests that are not complete. Beyond that a "
            + "request is answered with HTTP 503, and a socket is closed with code 1013.")

    static let failuresPerMinute = Setting(
        "limits.failures_per_minute", .integer(0...1_000_000), standard: .integer(10), isReloaded: true,
        "How many bad tokens an address may show before its next connections are held back for 2 seconds; 0 never holds "
            + "any. Behind a proxy all clients share its address: name it in http.trusted_proxies, or set 0.")

    static let privateOnly = Setting(
        "limits.private_only", .toggle, standard: .toggle(false), isReloaded: true,
        "Refuse channels that are joined without `private: true`.")

    static let pingAfter = Setting(
        "timeouts.ping_after", .integer(1...3600), standard: .integer(25), unit: "seconds", isReloaded: true,
        "A socket that was silent for so long is sent a ping.")

    static let idleTimeout = Setting(
        "timeouts.idle", .integer(2...86_400), standard: .integer(60), unit: "seconds", isReloaded: true,
        "A socket that was silent for so long, pings included, is closed. Clients send a heartbeat every 25 seconds.")

    static let bodyTimeout = Setting(
        "timeouts.body", .integer(1...3600), standard: .integer(30), unit: "seconds", isReloaded: true,
        "How long the body of an HTTP request may take to arrive; what takes longer is answered with HTTP 408.")

    static let recoveryWindowSeconds = Setting(
        "feed.recovery_window_seconds", .integer(0...3600), standard: .integer(120), unit: "seconds",
        "How long a client that was cut off, or that the hub itself left behind, may take to join again and still be "
            + "brought every change that it missed, though it knows nothing of cursors; 0 leaves that to clients that "
            + "send one.")

    static let retentionHours = Setting(
        "feed.retention_hours", .integer(1...8760), standard: .integer(24), unit: "hours",
        "How long changes stay in the outbox table: for so long may the hub be away and still deliver everything.")

    static let safetyPollSeconds = Setting(
        "feed.safety_poll_seconds", .integer(1...3600), standard: .integer(5), unit: "seconds",
        "How often the hub looks for changes although nothing rang. It costs next to nothing and covers a notification "
            + "that went missing with a connection.")

    static let readyLagSeconds = Setting(
        "feed.ready_lag_seconds", .integer(1...3600), standard: .integer(30), unit: "seconds",
        "How far changes may be behind the database, beyond feed.safety_poll_seconds, before /readyz says 503.")

    static let logLevel = Setting(
        "log.level", .choice(["trace", "debug", "info", "notice", "warning", "error", "critical"]),
        standard: .text("info"), isReloaded: true,
        "How much is logged, to standard error: trace, debug, info, notice, warning, error or critical.")

    static let logFormat = Setting(
        "log.format", .choice(["text", "json"]), standard: .text("text"), isReloaded: true,
        "How a line of the log is written: text for people, json for programs, one object in a line.")

    static let drainDelaySeconds = Setting(
        "drain.delay_seconds", .integer(0...600), standard: .integer(0), unit: "seconds", isReloaded: true,
        "On SIGTERM /readyz fails at once; the drain begins so much later, for a load balancer to notice first.")

    static let drainSeconds = Setting(
        "drain.seconds", .integer(0...600), standard: .integer(10), unit: "seconds", isReloaded: true,
        "On SIGTERM the sockets are closed in batches over so long, so that a deploy is not a stampede of reconnects.")
}
