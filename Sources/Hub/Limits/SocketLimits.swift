/// What one socket has used of its limits: 56 bytes of every connection.
struct SocketLimits {
    var joins = TokenBucket()
    var presence = TokenBucket()
    var messages = TokenBucket()
    var bytes = TokenBucket()
    /// Errors for frames without a ref, which no client can match to what it sent.
    var complaints = TokenBucket()
    /// The user whose sockets this one is counted among.
    var user: String?
}

extension HubLimits {
    // Clients that come back join all of their channels at once, and track themselves in each: no rate is to be in the
    // way of that.
    var joins: Rate? { Rate(perSecond: joinsPerSecond, burst: joinsPerSecond + channelsPerConnection) }
    var presence: Rate? { Rate(perSecond: presencePerSecond, burst: presencePerSecond + channelsPerConnection) }
    var messages: Rate? { Rate(perSecond: messagesPerSecond, burst: 2 * messagesPerSecond) }
    var bytes: Rate? { Rate(perSecond: bytesPerSecond, burst: 2 * bytesPerSecond) }
}
