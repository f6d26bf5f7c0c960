package import HTTP
package import Hub

/// What the hubs of all loops share with each other and with other rooms. Each object is safe from any thread and exists
/// once; whoever makes the rooms makes them.
package struct SharedHubState: Sendable {
    /// How far each client's acknowledgements go; the feed keeps what it points to.
    package var recovery = RecoveryBook()
    /// The broadcasts that are kept.
    package var history = HistoryBook()
    /// Who is present in channels.
    package var presences = PresenceBook()
    /// Where it is noted who is present, for whoever writes it down; nil if nobody does.
    package var presenceLog: PresenceLog?
    /// Which users are online, for whoever asks; nil if nobody does.
    package var users: UserPresence?
    /// The same for their devices.
    package var devices: UserPresence?
    /// Who types, for whoever asks; nil if nobody does.
    package var typing: TypingBoard?
    /// Who joins a Live Activity's channel, for whoever shows it; nil if nobody does.
    package var summaryJoins: SummaryJoins?

    package init() {}

    /// The hub of one loop.
    func hub(loop: Int, rules: GatewayRules, verifier: any TokenVerifier, users ledger: any UserLedger) -> Hub {
        Hub(
            loop: loop, limits: rules.limits, verifier: verifier, random: SystemRandomNumberGenerator(),
            book: recovery, history: history, ledger: ledger,
            presence: rules.presence, typing: rules.typing, presences: presences,
            presenceLog: presenceLog, users: users, devices: devices,
            typingBoard: typing, summaryJoins: summaryJoins)
    }

    /// Whoever is cut off from here on is expected back at the next process.
    func drain() {
        presences.drain()
        users?.drain()
        devices?.drain()
    }
}

/// Whom the loops ask: made by others, some of whom know the gateway, and so handed over when it starts. Called on the loops'
/// threads; nobody may keep one waiting.
package struct GatewayServices: Sendable {
    package var verifier: any TokenVerifier
    /// The feed of row changes; nil: there is none.
    package var feed: (any ChangeSource)?
    /// Decides about private channels. Without one, nobody may enter any.
    package var authority: (any ChannelAuthority)?
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

    init(_ rules: GatewayRules) {
        connections = ConnectionLimits(limits: rules.limits)
        failing = FailingAddresses(allowance: rules.failuresPerMinute)
        unfinished = UnfinishedBytes(cap: rules.unfinishedBytes)
    }

    func adopt(_ rules: GatewayRules) {
        connections.adopt(rules.limits)
        failing.adopt(allowance: rules.failuresPerMinute)
        unfinished.adopt(cap: rules.unfinishedBytes)
    }
}
