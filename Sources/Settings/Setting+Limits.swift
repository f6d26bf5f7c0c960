/// Limits: the number of sockets, the traffic of one socket, and the broadcasts kept in memory for channels that ask
/// for history (`config.broadcast.history`).
extension Setting {
    static let connections = Setting(
        "limits.connections", .integer(0...1_000_000), standard: .integer(0), unit: "sockets", isReloaded: true,
        "How many sockets the hub accepts; one more is refused with HTTP 503. 0: as many as the limit of open files "
            + "allows, except for a few that the hub keeps for itself.")

    static let connectionsPerAddress = Setting(
        "limits.connections_per_address", .integer(0...1_000_000), standard: .integer(0), unit: "sockets",
        isReloaded: true,
        "How many connections one address may have, or one /64 network of IPv6: WebSockets, HTTP requests, and idle ones, "
            + "the eldest of which makes room for the next. One more is refused with HTTP 429. 0: any number. Behind a "
            + "proxy all clients share its address: name it in http.trusted_proxies, or leave this 0.")

    static let connectionsPerUser = Setting(
        "limits.connections_per_user", .integer(0...1_000_000), standard: .integer(0), unit: "sockets",
        isReloaded: true,
        "How many sockets one user may have, by the claim `sub` of the token with which it connects, or else of the "
            + "first join. One more is refused with HTTP 429, or its join with an error. 0: any number; tokens without "
            + "`sub` do not count. A phone that lost its network counts until timeouts.idle. If several hubs act as "
            + "one (cluster.url), sockets on all hubs count.")

    static let channelsPerConnection = Setting(
        "limits.channels_per_connection", .integer(1...100_000), standard: .integer(100), unit: "channels",
        isReloaded: true,
        "How many channels one socket may join; a join beyond that is refused.")

    static let filtersPerChannel = Setting(
        "limits.filters_per_channel", .integer(1...100_000), standard: .integer(1000), unit: "filters",
        isReloaded: true,
        "How many entries a join may have in `postgres_changes`; a join with more is refused.")

    static let patternsPerConnection = Setting(
        "limits.patterns_per_connection", .integer(1...100_000), standard: .integer(100), unit: "patterns",
        isReloaded: true,
        "How many patterns (`like`, `ilike`, `match`, `imatch`) the filters of one socket may have, in all its "
            + "channels; a join beyond that is refused. Each is compared with every row of its table.")

    static let undecidedFilters = Setting(
        "limits.undecided_filters", .integer(1...100_000), standard: .integer(1000), unit: "filters",
        "How many filters Postgres may have to decide for one row: those with `ilike`, `match` or `imatch`, and others "
            + "that depend on a collation or on a type that the hub does not compare. If there are more, the filters "
            + "of the channels that have the most end with an error.")

    static let regularExpressions = Setting(
        "limits.regular_expressions", .toggle, standard: .toggle(true), isReloaded: true,
        "Serve filters with `match` and `imatch`. What an expression may cost is bounded (docs/protocol.md); set false "
            + "to refuse them all.")

    static let joinsPerSecond = Setting(
        "limits.joins_per_second", .integer(0...1_000_000), standard: .integer(100), unit: "joins", isReloaded: true,
        "How often one socket may join in a second, after as many at once as it may have channels. A join beyond that is "
            + "refused, and clients try again later; 0 refuses none.")

    static let presencePerSecond = Setting(
        "limits.presence_per_second", .integer(0...1_000_000), standard: .integer(50), unit: "messages",
        isReloaded: true,
        "How often one socket may track its presence in a second, after as many at once as it may have channels. "
            + "Anything beyond that is answered with an error; 0 refuses none.")

    static let messagesPerSecond = Setting(
        "limits.messages_per_second", .integer(0...1_000_000), standard: .integer(5000), unit: "messages",
        isReloaded: true,
        "How many messages a second are read from one socket, after twice as many at once. Nothing beyond that is "
            + "refused or lost: the sender has to wait. 0: as fast as they come.")

    static let bytesPerSecond = Setting(
        "limits.bytes_per_second", .integer(0...1_073_741_824), standard: .integer(10_000_000), unit: "bytes",
        isReloaded: true,
        "How many bytes a second are read from one socket, after twice as many at once; the sender has to wait. 0: as "
            + "fast as they come.")

    static let messageBytes = Setting(
        "limits.message_bytes", .integer(1024...268_435_456), standard: .integer(5_000_000), unit: "bytes",
        isReloaded: true,
        "The largest message a client may send; a larger one closes its socket with code 1009.")

    static let payloadBytes = Setting(
        "limits.payload_bytes", .integer(256...268_435_456), standard: .integer(3_000_000), unit: "bytes",
        isReloaded: true,
        "The largest payload of one broadcast or presence; a larger one is answered with an error. Python clients "
            + "accept no message over 1 MiB.")

    static let presenceBytes = Setting(
        "limits.presence_bytes", .integer(256...268_435_456), standard: .integer(500_000), unit: "bytes",
        isReloaded: true,
        "The largest payload that one member may track as its presence; a larger one is answered with an error. Every "
            + "member of the channel is sent it; a change holds it twice, and Python clients accept no message over 1 "
            + "MiB.")

    static let pendingBytesPerSocket = Setting(
        "limits.pending_bytes_per_socket", .integer(16_384...1_073_741_824), standard: .integer(1_048_576),
        unit: "bytes", isReloaded: true,
        "How much may wait for a reader that is slower than its channels. At the cap the socket is cut off, so that "
            + "the client reconnects; the hub's memory never grows with a slow reader.")

    static let unfinishedBytes = Setting(
        "limits.unfinished_bytes", .integer(1_048_576...68_719_476_736), standard: .integer(67_108_864), unit: "bytes",
        isReloaded: true,
        "How many bytes of incomplete messages and HTTP requests all clients together may have sent. Beyond that, a "
            + "request is answered with HTTP 503, and a socket is closed with code 1013.")

    static let requestsPerUser = Setting(
        "limits.requests_per_user", .integer(0...1_000_000), standard: .integer(100), unit: "requests",
        isReloaded: true,
        "How many HTTP requests of one user the hub keeps open at once: long-polls, event streams, and bodies that are "
            + "appended to a stream as they come. One more is refused with HTTP 429. 0: any number; tokens without `sub` "
            + "do not count.")

    static let failuresPerMinute = Setting(
        "limits.failures_per_minute", .integer(0...1_000_000), standard: .integer(10), isReloaded: true,
        "How many bad tokens an address may show before its next connections are held back for 2 seconds; 0 never holds "
            + "any. Behind a proxy all clients share its address: name it in http.trusted_proxies, or set 0.")

    static let privateOnly = Setting(
        "limits.private_only", .toggle, standard: .toggle(false), isReloaded: true,
        "Refuse channels that are joined without `private: true`.")

    static let historyMessages = Setting(
        "history.messages", .integer(0...100_000), standard: .integer(100), unit: "messages", isReloaded: true,
        "How many broadcasts a channel that asks for history keeps for members that come back. 0: channels keep none."
    )

    static let historySeconds = Setting(
        "history.seconds", .integer(1...3600), standard: .integer(60), unit: "seconds", isReloaded: true,
        "How long it keeps them.")

    static let historyBytesPerChannel = Setting(
        "history.bytes_per_channel", .integer(1024...1_073_741_824), standard: .integer(1_048_576), unit: "bytes",
        isReloaded: true,
        "How much one channel keeps. What falls out is missed, and those who missed it are told so.")

    static let historyBytes = Setting(
        "history.bytes", .integer(1024...68_719_476_736), standard: .integer(67_108_864), unit: "bytes",
        isReloaded: true,
        "How much all channels keep together; beyond that, the oldest messages of any channel go first.")
}
