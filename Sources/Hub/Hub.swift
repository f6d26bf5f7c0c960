package import Streams
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
    var presence: Presence
    var typing: Typing
    var history: History
    var receipts: Receipts
    var persistence = Persistence()
    let users: Users
    /// `Users.changesOfWatch` when the sockets were last looked through.
    private var seenChangesOfWatch = 0
    let summaries: Summaries
    package let bars: ChannelBars
    var streams: StreamChannels
    let verifier: any TokenVerifier
    /// What a backend is told; nil where none is.
    let happenings: Happenings?
    let filter: ChannelFilter?
    var channels: [ChannelKey: LocalChannel] = [:]
    /// Applies the relays that have been posted to this hub, at once; set by whoever posts them. Not called back for
    /// anything but `apply`.
    package var hearOthers: () -> Void = {}
    /// When connections without channels are looked for next; nil before the first tick.
    var nextSweep: Int64?
    /// When readers of events are told next where they are.
    var nextReaderAdvance = Int64.min
    /// No member's token runs out before this second (since 1970).
    var earliestExpiry = Int64.max
    package private(set) var connectionCount = 0

    /// - Parameters:
    ///   - random: makes presence keys, and names that no other hub makes.
    ///   - shared: the same of all hubs of the process.
    ///   - userLimiter: nil where users may have any number of sockets.
    ///   - filter: knows this hub's channels, for other threads; nil where nobody asks.
    package init(
        loop: Int, limits: HubLimits, verifier: any TokenVerifier, random: any RandomNumberGenerator & Sendable,
        presence: PresenceRules, typing: TypingRules, shared: HubShared,
        userLimiter: (any UserConnectionLimiter)? = nil, filter: ChannelFilter? = nil
    ) {
        self.filter = filter
        context = HubContext(loop: loop, hasPeers: shared.hasPeers, limits: limits, random: random)
        self.presence = Presence(rules: presence, leases: shared.leases, log: shared.presenceLog)
        self.typing = Typing(rules: typing, registry: shared.typing)
        history = History(store: shared.history)
        receipts = Receipts(registry: shared.receipts, log: shared.receiptLog)
        users = Users(online: shared.users, devices: shared.devices, limiter: userLimiter)
        summaries = Summaries(joins: shared.summaryJoins)
        bars = shared.bars
        streams = StreamChannels(service: shared.streams)
        happenings = shared.happenings
        self.verifier = verifier
        catchUp = CatchUp(sessions: shared.recovery)
    }

    package var channelCount: Int { channels.count }

    /// Whether a browser opened the connection.
    package func isPage(_ slot: Slot) -> Bool { connection(slot)?.isPage ?? false }

    /// Whose connection it is: by the token at the door, or else of a channel that it is in. Nil where none names a user.
    package func user(of slot: Slot) -> Name? { connection(slot)?.subject }

    /// Other limits and rules from here on. What was let in before stays, also where it would be too much now.
    package func adopt(_ limits: HubLimits, _ presence: PresenceRules, _ typing: TypingRules) {
        context.limits = limits
        self.presence.rules = presence
        self.typing.rules = typing
    }

    // MARK: Connections

    /// - Parameters:
    ///   - isCounted: whether the door counted the socket among its user's.
    ///   - isPage: a browser opened it.
    package func connect(
        _ slot: Slot, version: ProtocolVersion, claims: Claims, isCounted: Bool = true, isPage: Bool = false
    ) {
        let connection = Connection(slot, version: version, claims: claims, isPage: isPage, at: context.now.monotonic)
        context.add(connection)
        if isCounted { users.adopt(connection) }
        users.comeOnline(connection, as: claims, on: context.loop, at: context.now)
        connectionCount += 1
        if let happenings {
            connection.client = context.nextRef().text
            happenings.connected(connection.client, claims.subject, at: context.now)
        }
    }

    /// - Parameters:
    ///   - now: nil for the time that the hub was told last.
    ///   - isUnloaded: its client said that it goes, as a page does that is unloaded or hidden.
    ///   - silence: for how many milliseconds its client has not answered; 0 where the client, or its system, ended the connection.
    package func disconnect(
        _ slot: Slot, at now: HubTime? = nil, isUnloaded: Bool = false, afterSilence silence: Int64 = 0
    ) {
        guard let connection = connection(slot) else { return }
        if let now { advance(to: now) }
        receipts.closed(slot, &context)
        let window = users.window(of: connection, presence.rules)
        for membership in connection.memberships.reversed() { remove(membership, isUnloaded ? .unloaded : .lost) }
        users.release(connection)
        users.goOffline(connection, on: context.loop, window: window, afterSilence: silence, at: context.now)
        context.remove(connection)
        connectionCount -= 1
        happenings?.disconnected(connection.client, connection.claims.subject, at: context.now)
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
        connection.liveness?.isHeard(at: now.monotonic)
        let frame =
            isBinary
            ? try ClientFrame(binary: message, version: connection.version)
            : try ClientFrame(text: message, version: connection.version)
        // Without a ref it takes none of those that its client counts, as the Python client's heartbeats.
        if frame.ref.isNull { connection.received -= 1 }
        connection.receives(frame.ref)
        switch frame.event {
        case "heartbeat" where frame.topic == "phoenix":
            context.reply(to: frame, joinRef: .null, on: connection, ok: true)
        case "phx_join": join(frame, on: connection)
        case "phx_leave": leave(frame, on: connection)
        default:
            guard let membership = connection.memberships[frame.topic] else {
                return refuseStray(frame, on: connection)
            }
            guard membership.isMeant(by: frame.joinRef) else { return counters.staleMessages += 1 }
            if membership.lapse != nil, frame.event != "access_token" { return refuseLapsed(frame, of: membership) }
            switch frame.event {
            case "broadcast": broadcast(frame, of: membership)
            case "presence":
                guard let wanted = presence.write(in: frame, of: membership, &context) else { return }
                if let pending = membership.pending, membership.grants == nil {
                    return hold(wanted, ref: frame.ref, in: pending, of: membership)
                }
                write(wanted, ref: frame.ref, of: membership)
            case ReportedAppState.event:
                presence.appState(frame, of: membership, &context)
                noteAppState(of: connection)
            case "access_token": accessToken(frame, of: membership)
            default: break  // The original answers unknown events with silence; clients count on none of them.
            }
        }
    }

    /// Notes what an app's state, or its channels, say of how long it may be silent, and of whether anybody sees what arrives.
    func noteAppState(of connection: Connection) {
        connection.liveness?.adopt(window: users.window(of: connection, presence.rules))
        if connection.device != nil {
            users.devices?.note(SocketPlace(loop: context.loop, slot: connection.slot), isShown: connection.isShown)
        }
        if !connection.isShown { receipts.hid(connection, &context) }
    }

    /// Looks through the sockets once it has changed who is watched. To be called once a second.
    func followWatched() {
        let changes = users.changesOfWatch
        guard changes != seenChangesOfWatch else { return }
        seenChangesOfWatch = changes
        for connection in context.openConnections {
            users.follow(connection, at: context.now)
            connection.liveness?.adopt(window: users.window(of: connection, presence.rules))
        }
    }

    /// Refuses a frame about a channel that its sender is not in. Nobody waits for an answer to a token: a good one has none.
    private func refuseStray(_ frame: ClientFrame, on connection: Connection) {
        guard frame.event != "access_token" else { return }
        context.report(JoinFailure(.unmatchedTopic, of: .message), on: connection.slot)
        if !frame.ref.isNull { context.refuse(frame, on: connection, .unmatchedTopic) }
    }

    /// Counts what was read from a socket.
    ///
    /// - Parameters:
    ///   - endsMessage: with these bytes a message was complete.
    ///   - now: in monotonic milliseconds.
    /// - Returns: milliseconds for which the socket is to be left unread.
    package func pause(after bytes: Int, endsMessage: Bool, from slot: Slot, at now: Int64) -> Int64 {
        guard let connection = connection(slot) else { return 0 }
        return context.pause(after: bytes, endsMessage: endsMessage, on: connection, at: now)
    }

    // MARK: Presence

    /// What the lists of all channels hold.
    package var presenceBytes: Int { presence.listedBytes }
    package var hasOffers: Bool { presence.leases.hasOffers }

    /// Lets the other loops have the leases of those who were cut off. To be called when the relays among the actions are
    /// on their way.
    package func offerLeases() { presence.offerLeases(&context) }

    /// Shows those who were present when the hub's last process ended, before anybody joins. Their leases are with those
    /// that all loops share.
    package func restorePresence(_ restored: [PresenceLeases.Restored]) {
        for entry in restored { presence.restore(entry.meta, in: channel(entry.channel)) }
        // Every loop shows them; the sum is to count them once.
        if context.loop == 0 { counters.presenceJoins += restored.count }
        presence.scheduleLeases(&context)
    }

    /// Tells a member a state of a channel as a whole, because it was spared steps to it.
    package func show(_ state: ChannelState, to slot: Slot) {
        switch state {
        case .presence(let key):
            if let membership = member(slot, of: key) { presence.showAgain(to: membership, &context) }
        case .typing(let key):
            guard let membership = member(slot, of: key), membership.hearsBroadcasts else { return }
            typing.show(to: membership, &context)
        }
    }

    private func member(_ slot: Slot, of key: ChannelKey) -> Membership? {
        channels[key].flatMap { context.member(slot, of: $0) }
    }

    /// Tells one user what a Live Activity shows.
    package func show(_ summary: ActivitySummary) {
        for isPrivate in [false, true] {
            let key = ChannelKey(topic: summary.topic, isPrivate: isPrivate)
            if let channel = channels[key] { summaries.send(summary, in: channel, &context) }
        }
    }

    // MARK: Streams

    /// Whether sockets can take something now, and how to be told of it (`hasRoom`).
    package func askForRoom(
        hasRoom: @escaping (Slot) -> Bool, awaitRoom: @escaping (Slot) -> Void
    ) {
        streams.hasRoom = hasRoom
        streams.awaitRoom = awaitRoom
    }

    package func streamChanged(_ stream: StreamBuffer) {
        guard let channel = channels[ChannelStream.key(stream.name)] else { return }
        streams.changed(stream, in: channel, &context)
    }

    /// A socket that had no room for more of a stream has some.
    package func hasRoom(_ slot: Slot) {
        guard let connection = connection(slot) else { return }
        for membership in connection.memberships where membership.streamPlace?.waits == true {
            streams.hasRoom(membership, &context)
        }
    }

    /// What became of what `Action.stream` asked for.
    package func streamAnswered(_ id: Int, _ answer: StreamAnswer) { streams.answered(id, answer, &context) }

    /// What became of what `Action.store` asked for: the row's id, or nil.
    package func stored(_ id: Int, as row: String?) { persistence.answer(id, row, &context) }

    // MARK: The context

    /// What is to be done, in order. The gateway takes them after every call.
    package var actions: [Action] {
        get { context.actions }
        _modify { yield &context.actions }
    }
    package internal(set) var counters: HubCounters {
        get { context.counters }
        _modify { yield &context.counters }
    }
    /// For the metrics: what was refused for a limit.
    package var refused: [Limit: Int] { context.refused }
    /// For the metrics: what was read later for a rate.
    package var slowed: [Pace: Int] { context.slowed }

    func connection(_ slot: Slot) -> Connection? { context.connection(slot) }

    package func advance(to now: HubTime) { context.advance(to: now) }
    /// Somebody is to be told of failures.
    package var hasFailures: Bool { !context.failures.isEmpty }

    /// The failures since the last time, each with whom it met; more than some dozen at once are counted only.
    package func takeFailures() -> [(slot: Slot, failure: JoinFailure)] {
        defer { context.failures.removeAll() }
        return context.failures
    }

    package func countRefusal(_ refusal: Refusal) { context.count(refusal) }
}

/// What the hubs of all loops share with each other, and in part with other rooms. Made once; each of it is safe from any
/// thread.
package struct HubShared: Sendable {
    /// Who may come back for the row changes that it missed. The feed keeps what it points to.
    package let recovery: SessionRegistry
    /// The broadcasts that are kept for those who come back.
    package let history: HistoryStore
    /// The presences of those who were cut off.
    package let leases: PresenceLeases
    /// Where it is noted who is present, for whoever writes it down; nil if nobody does.
    package let presenceLog: PresenceLog?
    /// Which users are online, for whoever asks; nil if nobody does.
    package let users: UserPresence?
    /// The same for their devices, by `DeviceKey`.
    package let devices: UserPresence?
    /// Who types, for whoever asks; nil if nobody does.
    package let typing: TypingRegistry?
    /// How many sockets each user has, here and on other hubs.
    package let userTally: UserTally
    /// Who may not join which channel for a while.
    package let bars: ChannelBars
    /// Who joins a Live Activity's channel, for whoever shows it; nil if nobody does.
    package let summaryJoins: SummaryJoins?
    /// Who has certainly received which message, for whoever asks; nil if nobody does.
    package let receipts: ReceiptRegistry?
    /// Where it is noted who has certainly received which row; nil if nobody is told.
    package var receiptLog: ReceiptLog?
    /// Where it is noted what a backend is told; nil if none is.
    package var happenings: Happenings?
    /// Keeps streams; nil where none are served.
    package var streams: (any StreamService)?
    /// Other hubs act as one with this one.
    package var hasPeers = false

    package init(
        recovery: SessionRegistry = SessionRegistry(), history: HistoryStore = HistoryStore(),
        leases: PresenceLeases = PresenceLeases(), presenceLog: PresenceLog? = nil, users: UserPresence? = nil,
        devices: UserPresence? = nil, typing: TypingRegistry? = nil, userTally: UserTally = UserTally(),
        bars: ChannelBars = ChannelBars(), summaryJoins: SummaryJoins? = nil, receipts: ReceiptRegistry? = nil
    ) {
        self.recovery = recovery
        self.history = history
        self.leases = leases
        self.presenceLog = presenceLog
        self.users = users
        self.devices = devices
        self.typing = typing
        self.userTally = userTally
        self.bars = bars
        self.summaryJoins = summaryJoins
        self.receipts = receipts
    }
}
