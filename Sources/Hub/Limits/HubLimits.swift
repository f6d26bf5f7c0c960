/// What one socket may ask of the hub.
package struct HubLimits: Sendable {
    /// Channels that one socket may join (the original's default: 100).
    package var channelsPerConnection = 100
    /// Entries of one join's `postgres_changes`. The original takes any number; 1.6 million of them, which fit one frame,
    /// kept a loop busy for 8 s.
    package var filtersPerChannel = 1_000
    /// Conditions with `like`, `ilike`, `match` or `imatch` in the filters of one socket: each is held against every row.
    package var patternsPerConnection = 100
    /// Whether filters may have `match` and `imatch`.
    package var regularExpressions = true
    /// Bytes of one broadcast's or presence's payload (the original's default: 3,000 KB).
    package var payloadBytes = 3_000_000
    /// Only private channels may be joined.
    package var privateOnly = false

    /// Seconds for which a channel waits for a fresh token when its own has run out; 0: it ends at once.
    package var tokenGrace = 0

    // Zero in what follows: no limit.

    /// Sockets in all, from one address, of one user (the claim `sub`).
    package var connections = 0
    package var connectionsPerAddress = 0
    package var connectionsPerUser = 0
    /// What one socket may do in a second (`Rate`). The original counts 100 joins, 100 messages and 1,000 presence
    /// messages a second for a whole project, and closes what is over; its clients may track 5 times in 30 s.
    package var joinsPerSecond = 0
    package var presencePerSecond = 0
    package var messagesPerSecond = 0
    package var bytesPerSecond = 0

    /// Messages of one member that may wait for the policies' answer; their bytes together may be one payload's.
    package var heldPerMember = 100
    /// Bytes of what waits for answers, of all members of a loop.
    package var heldBytes = 16_000_000

    /// What a channel may keep of its broadcasts where a join asks for it (`config.broadcast.history`): messages (0: no
    /// channel keeps any), seconds, bytes.
    package var historyMessages = 100
    package var historySeconds = 60
    package var historyBytesPerChannel = 1_048_576
    /// Bytes that all channels of the process keep together; the oldest messages go first.
    package var historyBytes = 67_108_864
    /// Bytes of kept messages that one socket is sent within a second, when it joins again. What a socket may have pending
    /// has to be more, or those who missed much are cut off and come back for it for ever.
    package var historyBytesPerReturn = 524_288

    package init() {}
}
