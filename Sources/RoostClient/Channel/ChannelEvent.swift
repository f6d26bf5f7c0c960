/// What happens to a channel, for logs and for UIs that show it.
public enum ChannelEvent: Sendable, Equatable {
    /// The hub let the client in. `resumed` is true where every row change since the last connection comes.
    case joined(resumed: Bool)
    /// What was missed cannot be brought: row data has to be loaded again. Change sequences say so, too.
    case reloadNeeded(reason: String)
    /// Broadcasts were missed that the hub does not keep any more.
    case historyIncomplete(reason: String)
    /// The connection or the channel was lost; the client comes back by itself.
    case lost(reason: String)
    /// A join was refused for now; the next one follows after this time.
    case rejoining(in: Duration, reason: String)
    /// A `system` message of the hub.
    case notice(String)
    /// It ended for good.
    case failed(RoostError)
    case left
}
