import Hub
import Streams
import Wire

extension Hub {
    /// A hub of which a test says only what it is about. Nobody is brought what it missed unless there is a registry for it.
    convenience init(
        loop: Int, limits: HubLimits = HubLimits(), verifier: any TokenVerifier,
        random: any RandomNumberGenerator & Sendable, sessions: SessionRegistry = SessionRegistry(window: 0),
        history: HistoryStore? = nil, userLimiter: (any UserConnectionLimiter)? = nil,
        presence: PresenceRules = PresenceRules(), typing: TypingRules = TypingRules(),
        presences: PresenceLeases = PresenceLeases(), presenceLog: PresenceLog? = nil, users: UserPresence? = nil,
        devices: UserPresence? = nil, typingRegistry: TypingRegistry? = nil, summaryJoins: SummaryJoins? = nil,
        streams: (any StreamService)? = nil, happenings: Happenings? = nil, hasPeers: Bool = false,
        filter: ChannelFilter? = nil
    ) {
        var shared = HubShared(
            recovery: sessions, history: history ?? HistoryStore(limits: limits, window: 0), leases: presences,
            presenceLog: presenceLog, users: users, devices: devices, typing: typingRegistry, summaryJoins: summaryJoins
        )
        shared.streams = streams
        shared.happenings = happenings
        shared.hasPeers = hasPeers
        self.init(
            loop: loop, limits: limits, verifier: verifier, random: random, presence: presence, typing: typing,
            shared: shared, userLimiter: userLimiter, filter: filter)
    }
}
