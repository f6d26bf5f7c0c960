package import HTTP
package import Hub
package import Streams

/// The services that the loops use. Some of them know the gateway, so they are handed over when it starts. They are
/// called on the loops' threads and must not block.
package struct GatewayServices: Sendable {
    package var verifier: any TokenVerifier
    /// The feed of row changes; nil if there is none.
    package var feed: (any ChangeSource)?
    /// Decides about private channels. Without one, all joins to them are refused.
    package var authority: (any ChannelAuthority)?
    /// Stores broadcasts as rows if they ask for it. Without one, none are stored.
    package var messages: (any MessageStore)?
    /// Stores streams; nil if none are served.
    package var streams: (any StreamService)?
    /// Forwards requests to the application's backend; nil if no route does.
    package var forwarder: (any StreamForwarder)?
    /// Tells the other hubs of a cluster about events here; nil if there are none.
    package var peers: (any PeerService)?
    /// Answers requests on the clients' port that the hub does not serve itself.
    package var handler: (any HTTPHandler)?
    /// Answers requests on the operator's port.
    package var opsHandler: (any HTTPHandler)?
    /// Serves the WebSockets of the operator's port.
    package var opsSocketHandler: (any OpsSocketHandler)?

    package init(verifier: any TokenVerifier) {
        self.verifier = verifier
    }
}

/// State that the loops of a gateway share: counts that are limited for the whole process.
struct SharedLimits: Sendable {
    let connections: ConnectionLimits
    let failing: FailingAddresses
    let unfinished: UnfinishedBytes
    let readers = ChangeReaders()
    let tickets = EventTickets()
    let requests: HeldRequests

    init(_ rules: GatewayRules, tally: UserTally) {
        connections = ConnectionLimits(limits: rules.limits, tally: tally)
        failing = FailingAddresses(allowance: rules.failuresPerMinute)
        unfinished = UnfinishedBytes(cap: rules.unfinishedBytes)
        requests = HeldRequests(most: rules.requestsPerUser)
    }

    func adopt(_ rules: GatewayRules) {
        connections.adopt(rules.limits)
        failing.adopt(allowance: rules.failuresPerMinute)
        unfinished.adopt(cap: rules.unfinishedBytes)
        requests.adopt(most: rules.requestsPerUser)
    }
}
