/// How many sockets there may be, and what one of them may do in a second.
extension Setting {
    static let connections = Setting(
        "limits.connections", .integer(0...1_000_000), standard: .integer(0), unit: "sockets", isReloaded: true,
        "How many sockets the hub takes; one more is refused with HTTP 503. 0: as many as the system lets it open files, "
            + "but for a few that it keeps for itself.")

    static let connectionsPerAddress = Setting(
        "limits.connections_per_address", .integer(0...1_000_000), standard: .integer(0), unit: "sockets",
        isReloaded: true,
        "How many sockets one address may have, or one /64 network of IPv6; one more is refused with HTTP 429. 0: any "
            + "number. Behind a proxy all clients share its address: name it in http.trusted_proxies, or leave this 0.")

    static let connectionsPerUser = Setting(
        "limits.connections_per_user", .integer(0...1_000_000), standard: .integer(0), unit: "sockets",
        isReloaded: true,
        "How many sockets one user may have, by the claim `sub` of the token at the door or else of the first join. One "
            + "more is refused with HTTP 429, or its join with an error. 0: any number; tokens without `sub` do not count. "
            + "A phone that lost its network counts until timeouts.idle.")

    static let filtersPerChannel = Setting(
        "limits.filters_per_channel", .integer(1...100_000), standard: .integer(1000), unit: "filters",
        isReloaded: true,
        "How many entries a join may have in `postgres_changes`; a join with more is refused.")

    static let patternsPerConnection = Setting(
        "limits.patterns_per_connection", .integer(1...100_000), standard: .integer(100), unit: "patterns",
        isReloaded: true,
        "How many patterns (`like`, `ilike`, `match`, `imatch`) the filters of one socket may have, in all its channels; a "
            + "join beyond that is refused. Each is held against every row of its table.")

    static let undecidedFilters = Setting(
        "limits.undecided_filters", .integer(1...100_000), standard: .integer(1000), unit: "filters",
        "How many filters Postgres may have to decide for one row: those with `ilike`, `match` or `imatch`, and others "
            + "that depend on a collation or on a type that the hub does not compare. Of more, those end of the channels "
            + "that have the most, with an error.")

    static let regularExpressions = Setting(
        "limits.regular_expressions", .toggle, standard: .toggle(true), isReloaded: true,
        "Serve filters with `match` and `imatch`. What an expression may cost is bounded (docs/protocol.md); set false to "
            + "have none from clients at all.")

    static let joinsPerSecond = Setting(
        "limits.joins_per_second", .integer(0...1_000_000), standard: .integer(100), unit: "joins", isReloaded: true,
        "How often one socket may join in a second, after as many at once as it may have channels. A join beyond that is "
            + "refused, and clients try again later; 0 refuses none.")

    static let presencePerSecond = Setting(
        "limits.presence_per_second", .integer(0...1_000_000), standard: .integer(50), unit: "messages",
        isReloaded: true,
        "How often one socket may track its presence in a second, after as many at once as it may have channels. What "
            + "is beyond that is answered with an error; 0 refuses none.")

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

    static let presenceBytes = Setting(
        "limits.presence_bytes", .integer(256...268_435_456), standard: .integer(500_000), unit: "bytes",
        isReloaded: true,
        "The largest payload that one member may track as its presence; a larger one is answered with an "
            + "error. Every member of the channel is sent it; a change holds it twice, and Python clients take no "
            + "message over 1 MiB.")
}
