package import Wire

/// The channels of one event loop: who is in them, who is present, who hears which row changes.
///
/// This is the room's one door. The gateway calls it with what happened (a socket opened, bytes came in, a second went
/// by) and then takes `actions` and carries them out, in order. A hub does no I/O, reads no clock and starts no threads;
/// time and randomness are passed in, so every rule of the protocol is tested with plain values.
///
/// There is one hub per loop and nothing is shared between them. A channel that has members on several loops exists on
/// each: broadcasts and presence are relayed (`Action.relay`, `apply`), row changes reach every loop from the feed.
///
/// **Shutdown**: nothing here needs to be told; the gateway closes sockets and calls `disconnect` for each.
/// **Overload**: what a slow socket has not taken yet is the gateway's, and capped there. The hub itself holds only what
/// waits for the policies of a private channel, within `HubLimits.heldBytes`.
package final class Hub {
    /// What its features have in common.
    var context: HubContext
    var authorization = Authorization()
    var rows = RowSubscriptions()
    var catchUp: CatchUp
    var typing: Typing
    let verifier: any TokenVerifier
    var channels: [ChannelKey: Channel] = [:]
    let history: HistoryBook
    /// Bytes of kept messages that a socket was sent in this second.
    var historySent: [Slot: Int] = [:]
    /// Nil: users may have any number of sockets.
    let ledger: (any UserLedger)?
    private(set) var presenceRules: PresenceRules
    let presences: PresenceBook
    /// What the lists of all channels hold.
    package internal(set) var presenceBytes = 0
    /// Nil: nobody writes down who is present.
    let presenceLog: PresenceLog?
    /// Nil: nobody asks who is online.
    let users: UserPresence?
    /// The same for their devices, by `DeviceKey`.
    let devices: UserPresence?
    /// Nil: nobody knows what Live Activities show.
    let summaryJoins: SummaryJoins?
    /// Applies the relays that have been posted to this hub, at once; set by whoever posts them. Not called back for
    /// anything but `apply`.
    package var hearOthers: () -> Void = {}
    /// Leases that the other loops have not heard of.
    var offers: [PresenceLease] = []
    /// For the metrics: what was read later for a rate.
    package internal(set) var slowed: [Pace: Int] = [:]
    /// When connections without channels are looked for next; nil before the first tick.
    var nextSweep: Int64?
    /// No member's token runs out before this second (since 1970).
    var earliestExpiry = Int64.max
    /// Makes `phx_ref` unique among hubs.
    let refPrefix: String
    package private(set) var connectionCount = 0

    package init(
        loop: Int, limits: HubLimits = HubLimits(), verifier: any TokenVerifier,
        random: any RandomNumberGenerator & Sendable, sessions: SessionRegistry = SessionRegistry(window: 0),
        history: HistoryBook? = nil, ledger: (any UserLedger)? = nil, presence: PresenceRules = PresenceRules(),
        typing: TypingRules = TypingRules(), presences: PresenceBook = PresenceBook(),
        presenceLog: PresenceLog? = nil, users: UserPresence? = nil, devices: UserPresence? = nil,
        typingRegistry: TypingRegistry? = nil, summaryJoins: SummaryJoins? = nil
    ) {
        context = HubContext(loop: loop, limits: limits, random: random)
        self.typing = Typing(rules: typing, registry: typingRegistry)
        self.verifier = verifier
        catchUp = CatchUp(sessions: sessions)
        self.history = history ?? HistoryBook(limits: limits, window: 0)
        self.ledger = ledger
        presenceRules = presence
        self.presences = presences
        self.presenceLog = presenceLog
        self.users = users
        self.devices = devices
        self.summaryJoins = summaryJoins
        var generator: any RandomNumberGenerator = random
        refPrefix = String(generator.next(), radix: 36) + "-" + String(loop, radix: 36) + "-"
    }

    package var channelCount: Int { channels.count }

    /// Whose connection it is: by the token at the door, or else of a channel that it is in. Nil where none names a user.
    package func user(of slot: Slot) -> String? { connection(slot)?.subject }

    /// Other limits and rules from here on. What was let in before stays, also where it would be too much now.
    package func adopt(_ limits: HubLimits, _ presence: PresenceRules, _ typing: TypingRules) {
        context.limits = limits
        presenceRules = presence
        self.typing.rules = typing
    }

    // MARK: Connections

    /// - Parameters:
    ///   - isCounted: whether the door counted the socket among its user's.
    ///   - isPage: a browser opened it.
    package func connect(
        _ slot: Slot, version: ProtocolVersion, claims: Claims, isCounted: Bool = true, isPage: Bool = false
    ) {
        let connection = Connection(slot, version: version, claims: claims, isPage: isPage, at: latest.monotonic)
        context.add(connection)
        if isCounted { adoptUser(of: connection) }
        comeOnline(connection, as: claims)
        connectionCount += 1
    }

    /// - Parameters:
    ///   - now: nil for the time that the hub was told last.
    ///   - isUnloaded: the socket was that of a page that is gone for good.
    package func disconnect(_ slot: Slot, at now: HubTime? = nil, isUnloaded: Bool = false) {
        guard let connection = connection(slot) else { return }
        if let now { advance(to: now) }
        let window = onlineWindow(of: connection)
        for membership in connection.memberships.reversed() { remove(membership, isUnloaded ? .unloaded : .lost) }
        releaseUser(of: connection)
        goOffline(connection, window: window)
        context.remove(connection)
        connectionCount -= 1
    }

    // MARK: Frames

    /// Handles one whole message. Throws what is wrong with it, for the log: a malformed frame is dropped and the
    /// connection kept, as the original does.
    package func receive(
        _ message: ArraySlice<UInt8>, isBinary: Bool, from slot: Slot, at now: HubTime
    ) throws(ClientFrame.Malformed) {
        guard let connection = connection(slot) else { return }
        advance(to: now)
        connection.received += 1
        let frame =
            isBinary
            ? try ClientFrame(binary: message, version: connection.version)
            : try ClientFrame(text: message, version: connection.version)
        switch frame.event {
        case "heartbeat" where frame.topic == "phoenix": reply(to: frame, joinRef: .null, on: connection, ok: true)
        case "phx_join": join(frame, on: connection, at: now)
        case "phx_leave": leave(frame, on: connection)
        default:
            guard let membership = connection.memberships[frame.topic] else {
                return refuse(frame, on: connection, .unmatchedTopic)
            }
            switch frame.event {
            case "broadcast": broadcast(frame, of: membership)
            case "presence": presence(frame, of: membership)
            case Self.appStateEvent: appState(frame, of: membership)
            case "access_token": accessToken(frame, of: membership, at: now)
            default: break  // The original answers unknown events with silence; clients count on none of them.
            }
        }
    }

    // MARK: The context

    /// What is to be done, in order. The gateway takes them after every call.
    package var actions: [Action] {
        get { context.actions }
        _modify { yield &context.actions }
    }
    package var counters: HubCounters {
        get { context.counters }
        _modify { yield &context.counters }
    }
    /// For the metrics: what was refused for a limit.
    package var refused: [Limit: Int] { context.refused }

    var loop: Int { context.loop }
    var limits: HubLimits { context.limits }
    var latest: HubTime { context.now }
    var connections: [Connection?] { context.connections }
    func connection(_ slot: Slot) -> Connection? { context.connection(slot) }
    func nextSerial() -> Int { context.nextSerial() }

    package func advance(to now: HubTime) { context.advance(to: now) }
    package func countRefusal(_ refusal: Refusal) { context.count(refusal) }

    func reply(
        to frame: ClientFrame, joinRef: JSON, on connection: Connection, ok: Bool,
        response: [UInt8] = Array("{}".utf8)
    ) {
        context.reply(to: frame, joinRef: joinRef, on: connection, ok: ok, response: response)
    }

    func refuse(_ frame: ClientFrame, joinRef: JSON = .null, on connection: Connection, _ refusal: Refusal) {
        context.refuse(frame, joinRef: joinRef, on: connection, refusal)
    }

    func reply(to ref: JSON, of membership: Membership, ok: Bool, response: [UInt8] = Array("{}".utf8)) {
        context.reply(to: ref, of: membership, ok: ok, response: response)
    }

    func refuse(_ ref: JSON, of membership: Membership, _ refusal: Refusal) {
        context.refuse(ref, of: membership, refusal)
    }

    func system(
        _ membership: Membership, extension name: String, ok: Bool, message: String, cursor: String? = nil
    ) {
        context.system(membership, extension: name, ok: ok, message: message, cursor: cursor)
    }
}
