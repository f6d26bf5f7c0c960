/// Limits on what sockets may ask of the hub.
package struct HubLimits: Sendable {
    /// Channels that one socket may join (the original's default: 100).
    package var channelsPerConnection = 100
    /// Entries of one join's `postgres_changes`. The original accepts any number; 1.6 million of them, which fit into
    /// one frame, kept a loop busy for 8 s.
    package var filtersPerChannel = 1_000
    /// Conditions with `like`, `ilike`, `match` or `imatch` in the filters of one socket: each is tested against every
    /// row.
    package var patternsPerConnection = 100
    /// Whether filters may have `match` and `imatch`.
    package var regularExpressions = true
    /// Bytes of one broadcast's or presence's payload (the original's default: 3,000 KB).
    package var payloadBytes = 3_000_000
    /// Only private channels may be joined.
    package var privateOnly = false

    /// Seconds for which a channel waits for a fresh token when its own has expired; 0 ends it at once.
    package var tokenGrace = 0

    // For all limits below, zero means unlimited.

    /// Sockets in total, per address, and per user (the claim `sub`).
    package var connections = 0
    package var connectionsPerAddress = 0
    package var connectionsPerUser = 0
    /// Rates for one socket (`Rate`). The original counts 100 joins, 100 messages and 1,000 presence messages a second
    /// for a whole project, and closes sockets above that; its clients may track 5 times in 30 s.
    package var joinsPerSecond = 0
    package var presencePerSecond = 0
    package var messagesPerSecond = 0
    package var bytesPerSecond = 0

    /// Messages of one member that may be held for the policies' answer; together they may be as large as one payload.
    package var heldPerMember = 100
    /// Bytes held for answers, for all members of a loop.
    package var heldBytes = 16_000_000

    /// A channel's history if a join asks for it (`config.broadcast.history`): messages (0 turns history off), seconds,
    /// bytes.
    package var historyMessages = 100
    package var historySeconds = 60
    package var historyBytesPerChannel = 1_048_576
    /// Bytes that all channels of the process keep together; the oldest messages are dropped first.
    package var historyBytes = 67_108_864
    /// Bytes of kept messages sent to one socket within a second when it rejoins. The limit on a socket's pending bytes
    /// must be higher, or clients that missed much would be cut off and come back for it forever.
    package var historyBytesPerReturn = 524_288

    package init() {}
}
