/// What one socket may ask of the hub.
package struct HubLimits: Sendable {
    /// Channels that one socket may join (the original's default: 100).
    package var channelsPerConnection = 100
    /// Entries of one join's `postgres_changes`. The original takes any number; 1.6 million of them, which fit one frame,
    /// kept a loop busy for 8 s.
    package var bindingsPerChannel = 1_000
    /// Bytes of one broadcast's or presence's payload (the original's default: 3,000 KB).
    package var payloadBytes = 3_000_000
    /// Only private channels may be joined.
    package var privateOnly = false

    /// Messages of one member that may wait for the policies' answer; their bytes together may be one payload's.
    package var heldPerMember = 100
    /// Bytes of what waits for answers, of all members of a loop.
    package var heldBytes = 16_000_000

    package init() {}
}
