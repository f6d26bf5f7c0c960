import Wire

/// One socket's use of its limits: 48 bytes of every connection.
struct SocketLimits {
    fileprivate var joins = TokenBucket()
    fileprivate var presence = TokenBucket()
    fileprivate var messages = TokenBucket()
    fileprivate var bytes = TokenBucket()
    /// The user whose sockets include this one.
    var user: Name?
}

/// A rate at which a socket is read. Exceeding it causes no refusal: the excess waits in the sender's kernel.
package enum Pace: String, Sendable, CaseIterable {
    case messagesPerSecond = "messages_per_second"
    case bytesPerSecond = "bytes_per_second"
}

extension HubLimits {
    // Returning clients join all of their channels at once and track themselves in each: no rate may get in the way of
    // that.
    fileprivate var joins: Rate? { Rate(perSecond: joinsPerSecond, burst: joinsPerSecond + channelsPerConnection) }
    fileprivate var presence: Rate? {
        Rate(perSecond: presencePerSecond, burst: presencePerSecond + channelsPerConnection)
    }
    fileprivate var messages: Rate? { Rate(perSecond: messagesPerSecond, burst: 2 * messagesPerSecond) }
    fileprivate var bytes: Rate? { Rate(perSecond: bytesPerSecond, burst: 2 * bytesPerSecond) }
}

extension HubContext {
    /// Counts a join. Refused joins count as well: each costs a look at a token.
    mutating func countJoin(on connection: Connection) throws(Refusal) {
        guard let rate = limits.joins else { return }
        if !connection.limits.joins.takeTokens(of: rate, at: now.monotonic) {
            throw .over(.joinsPerSecond, limits.joinsPerSecond)
        }
    }

    /// Whether a member may track once more; if not, the message was refused.
    ///
    /// Only tracking is counted. Untracking is allowed at any rate, and costs nothing unless the client tracks again.
    mutating func mayTrack(_ membership: Membership, ref: JSON) -> Bool {
        guard let rate = limits.presence,
            !membership.connection.limits.presence.takeTokens(of: rate, at: now.monotonic)
        else { return true }
        refuseMessage(.presence, ref, of: membership, .over(.presencePerSecond, limits.presencePerSecond))
        return false
    }

    /// Counts bytes read from a socket. They are handled in any case; the count only determines how soon the socket is
    /// read again.
    ///
    /// - Parameters:
    ///   - endsMessage: whether these bytes completed a message.
    ///   - now: in monotonic milliseconds.
    /// - Returns: milliseconds for which the socket must be left unread.
    mutating func pause(after bytes: Int, endsMessage: Bool, on connection: Connection, at now: Int64) -> Int64 {
        var pause: Int64 = 0
        if let rate = limits.bytes {
            let owed = connection.limits.bytes.spendTokens(bytes, of: rate, at: now)
            if owed > 0 { slowed[.bytesPerSecond, default: 0] += 1 }
            pause = max(pause, owed)
        }
        if endsMessage, let rate = limits.messages {
            let owed = connection.limits.messages.spendTokens(1, of: rate, at: now)
            if owed > 0 { slowed[.messagesPerSecond, default: 0] += 1 }
            pause = max(pause, owed)
        }
        return pause
    }
}
