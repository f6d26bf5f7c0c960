package import HTTP
package import Hub
package import Streams

/// Whom the loops ask: made by others, some of whom know the gateway, and so handed over when it starts. Called on the loops'
/// threads; nobody may keep one waiting.
package struct GatewayServices: Sendable {
    package var verifier: any TokenVerifier
    /// The feed of row changes; nil: there is none.
    package var feed: (any ChangeSource)?
    /// Decides about private channels. Without one, nobody may enter any.
    package var authority: (any ChannelAuthority)?
    /// Keeps broadcasts that ask for it as rows. Without one, none are.
    package var messages: (any MessageStore)?
    /// Keeps streams; nil: none are served.
    package var streams: (any StreamService)?
    /// Passes requests on to the application's backend; nil: no route does.
    package var forwarder: (any StreamForwarder)?
    /// Tells other hubs of a cluster what happens here; nil: there are none.
    package var peers: (any PeerService)?
    /// Answers requests to the clients' port that the hub does not serve itself.
    package var handler: (any HTTPHandler)?
    /// Answers requests to the operator's port.
    package var opsHandler: (any HTTPHandler)?
    /// Serves the WebSockets of the operator's port.
    package var opsSocketHandler: (any OpsSocketHandler)?

    package init(verifier: any TokenVerifier) {
        self.verifier = verifier
    }
}

/// What the loops of a gateway share among themselves: counts that are limited for the whole process.
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
