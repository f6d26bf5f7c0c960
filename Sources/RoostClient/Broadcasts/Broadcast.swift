/// A message of another client, or of SQL.
public struct Broadcast<Payload: Sendable>: Sendable {
    public let event: String
    public let payload: Payload
    /// What the hub says of it, if anything.
    public let meta: BroadcastMeta?
    /// So many messages of this name were dropped before this one, because the consumer was too slow for the buffer.
    public let missedBefore: Int
    /// So many messages of this name before this one were not of the type that was asked for.
    public let unreadableBefore: Int
}
