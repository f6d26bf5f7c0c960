package import Streams
package import Wire

/// The channels of one event loop: their members, presence, and subscriptions to row changes.
///
/// This is the room's only entry point. The gateway reports events to it (a socket opened, bytes arrived, a second went
/// by), then takes `actions` and executes them in order. A hub does no I/O, reads no clock and starts no threads; time
/// and randomness are passed in, so every rule of the protocol is tested with plain values.
///
/// There is one hub per loop, and loops share nothing between them. A channel with members on several loops exists on
/// each of them: broadcasts and presence are relayed (`Action.relay`, `applyRelay`), row changes reach every loop from
/// the feed.
///
/// **Shutdown**: the hub needs no notice; the gateway closes sockets and calls `disconnect` for each. **Overload**:
/// what a slow socket has not taken yet belongs to the gateway, and is capped there. The hub itself holds only what
/// waits for the policies of a private channel, within `HubLimits.heldBytes`.
package final class Hub {
    /// The state shared by the hub's features.
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
    /// The value of `Users.changesOfWatch` when the sockets were last scanned.
    private var seenChangesOfWatch = 0
    let summaries: Summaries
    package let bars: ChannelBars
    var streams: StreamChannels
    let verifier: any TokenVerifier
    /// Records events for a backend; nil if there is none.
    let happenings: Happenings?
    let filter: ChannelFilter?
    var channels: [ChannelKey: LocalChannel] = [:]
    /// Applies relays posted to this hub at once; set by the code that posts them. It only calls back `applyRelay`.
    package var hearOthers: () -> Void = {}
    /// When connections without channels are next swept; nil before the first tick.
    var nextSweep: Int64?
    /// When readers of events are next told their positions.
    var nextReaderAdvance = Int64.min
    /// No member's token expires before this second (since 1970).
    var earliestExpiry = Int64.max
    package private(set) var connectionCount = 0

    /// - Parameters:
    ///   - random: makes presence keys, and names unique among hubs.
    ///   - shared: the same for all hubs of the process.
    ///   - userLimiter: nil if users may have any number of sockets.
    ///   - filter: tells other threads which channels this hub has; nil if no thread asks.
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

    /// The connection's user: from the token at the door, or else from a channel that it is in. Nil if neither names
    /// one.
    package func user(of slot: Slot) -> Name? { connection(slot)?.subject }

    /// Applies new limits and rules. Whatever was admitted before stays, even if it exceeds them.
    package func applySettings(_ limits: HubLimits, _ presence: PresenceRules, _ typing: TypingRules) {
        context.limits = limits
        self.presence.rules = presence
        self.typing.rules = typing
    }

    // MARK: Connections

    /// - Parameters:
    ///   - isCounted: whether the door counted the socket towards its user's limit.
    ///   - isPage: whether a browser opened it.
    package func connect(
        _ slot: Slot, version: ProtocolVersion, claims: Claims, isCounted: Bool = true, isPage: Bool = false
    ) {
        let connection = Connection(slot, version: version, claims: claims, isPage: isPage, at: context.now.monotonic)
        context.addConnection(connection)
        if isCounted { users.markCounted(connection) }
        users.comeOnline(connection, as: claims, on: context.loop, at: context.now)
        connectionCount += 1
        if let happenings {
            connection.client = context.nextRef().text
            happenings.clientConnected(connection.client, claims.subject, at: context.now)
        }
    }

    /// - Parameters:
    ///   - now: nil for the time that the hub was last told.
    ///   - isUnloaded: whether its client announced that it is going, as a page does that is unloaded or hidden.
    ///   - silence: for how many milliseconds its client has not answered; 0 if the client, or its system, ended the
    ///     connection.
    package func disconnect(
        _ slot: Slot, at now: HubTime? = nil, isUnloaded: Bool = false, afterSilence silence: Int64 = 0
    ) {
        guard let connection = connection(slot) else { return }
        if let now { advanceTime(to: now) }
        receipts.socketClosed(slot, &context)
        let window = users.window(of: connection, presence.rules)
        for membership in connection.memberships.reversed() { removeMember(membership, isUnloaded ? .unloaded : .lost) }
        users.releaseSocket(connection)
        users.goOffline(connection, on: context.loop, window: window, afterSilence: silence, at: context.now)
        context.removeConnection(connection)
        connectionCount -= 1
        happenings?.clientDisconnected(connection.client, connection.claims.subject, at: context.now)
    }

    // MARK: Frames

    /// Handles one whole message. Throws its flaw, for the log: a malformed frame is dropped and the connection kept,
    /// as in the original.
    package func receiveMessage(
        _ message: ArraySlice<UInt8>, isBinary: Bool, from slot: Slot, at now: HubTime
    ) throws(ClientFrame.Malformed) {
        guard let connection = connection(slot) else { return }
        advanceTime(to: now)
        connection.received += 1
        connection.liveness?.recordMessage(at: now.monotonic)
        let frame =
            isBinary
            ? try ClientFrame(binary: message, version: connection.version)
            : try ClientFrame(text: message, version: connection.version)
        // A message without a ref takes none of the numbers that its client counts, like the Python client's
        // heartbeats.
        if frame.ref.isNull { connection.received -= 1 }
        connection.recordRef(frame.ref)
        switch frame.event {
        case "heartbeat" where frame.topic == "phoenix":
            context.reply(to: frame, joinRef: .null, on: connection, ok: true)
        case "phx_join": joinChannel(frame, on: connection)
        case "phx_leave": leaveChannel(frame, on: connection)
        default:
            guard let membership = connection.memberships[frame.topic] else {
                return refuseStray(frame, on: connection)
            }
            guard membership.isMeant(by: frame.joinRef) else { return counters.staleMessages += 1 }
            if membership.lapse != nil, frame.event != "access_token" { return refuseLapsed(frame, of: membership) }
            switch frame.event {
            case "broadcast": handleBroadcast(frame, of: membership)
            case "presence":
                guard let wanted = presence.parseWrite(in: frame, of: membership, &context) else { return }
                if let pending = membership.pending, membership.grants == nil {
                    return holdPresence(wanted, ref: frame.ref, in: pending, of: membership)
                }
                submitWrite(wanted, ref: frame.ref, of: membership)
            case ReportedAppState.event:
                presence.handleAppState(frame, of: membership, &context)
                noteAppState(of: connection)
            case "access_token": accessToken(frame, of: membership)
            default: break  // The original ignores unknown events; clients rely on no answer to them.
            }
        }
    }

    /// Applies what an app's state or its channels imply: how long it may be silent, and whether its user sees what
    /// arrives.
    func noteAppState(of connection: Connection) {
        connection.liveness?.setGrace(window: users.window(of: connection, presence.rules))
        if connection.device != nil {
            users.devices?.setShown(SocketPlace(loop: context.loop, slot: connection.slot), isShown: connection.isShown)
        }
        if !connection.isShown { receipts.appHidden(connection, &context) }
    }

    /// Scans the sockets if the set of watched users has changed. Call once a second.
    func followWatched() {
        let changes = users.changesOfWatch
        guard changes != seenChangesOfWatch else { return }
        seenChangesOfWatch = changes
        for connection in context.openConnections {
            users.updateLiveness(connection, at: context.now)
            connection.liveness?.setGrace(window: users.window(of: connection, presence.rules))
        }
    }

    /// Refuses a frame about a channel that its sender is not in. A token gets no answer: clients expect none for a
    /// good one either.
    private func refuseStray(_ frame: ClientFrame, on connection: Connection) {
        guard frame.event != "access_token" else { return }
        context.reportFailure(JoinFailure(.unmatchedTopic, of: .message), on: connection.slot)
        if !frame.ref.isNull { context.refuseFrame(frame, on: connection, .unmatchedTopic) }
    }

    /// Counts bytes read from a socket.
    ///
    /// - Parameters:
    ///   - endsMessage: whether these bytes completed a message.
    ///   - now: in monotonic milliseconds.
    /// - Returns: milliseconds for which the socket must be left unread.
    package func pause(after bytes: Int, endsMessage: Bool, from slot: Slot, at now: Int64) -> Int64 {
        guard let connection = connection(slot) else { return 0 }
        return context.pause(after: bytes, endsMessage: endsMessage, on: connection, at: now)
    }

    // MARK: Presence

    /// Bytes in the lists of all channels.
    package var presenceBytes: Int { presence.listedBytes }
    package var hasOffers: Bool { presence.leases.hasOffers }

    /// Shares the leases of members that were cut off with the other loops. Call when the relays among the actions are
    /// on their way.
    package func offerLeases() { presence.offerLeases(&context) }

    /// Shows presences from before the hub's last process ended, before any client joins. Their leases are with those
    /// that all loops share.
    package func restorePresence(_ restored: [PresenceLeases.Restored]) {
        for entry in restored { presence.restoreMember(entry.meta, in: ensureChannel(entry.channel)) }
        // Every loop shows them, but the total must count them once.
        if context.loop == 0 { counters.presenceJoins += restored.count }
        presence.scheduleLeases(&context)
    }

    /// Sends a member a channel's state as a whole, because it was spared steps to it.
    package func showState(_ state: ChannelState, to slot: Slot) {
        switch state {
        case .presence(let key):
            if let membership = member(slot, of: key) { presence.showAgain(to: membership, &context) }
        case .typing(let key):
            guard let membership = member(slot, of: key), membership.hearsBroadcasts else { return }
            typing.showTyping(to: membership, &context)
        }
    }

    private func member(_ slot: Slot, of key: ChannelKey) -> Membership? {
        channels[key].flatMap { context.member(slot, of: $0) }
    }

    /// Sends a user the state of a Live Activity.
    package func showSummary(_ summary: ActivitySummary) {
        for isPrivate in [false, true] {
            let key = ChannelKey(topic: summary.topic, isPrivate: isPrivate)
            if let channel = channels[key] { summaries.sendSummary(summary, in: channel, &context) }
        }
    }

    // MARK: Streams

    /// Sets how to ask whether sockets have room, and how to be told when they do (`roomBecameFree`).
    package func askForRoom(
        hasRoom: @escaping (Slot) -> Bool, awaitRoom: @escaping (Slot) -> Void
    ) {
        streams.hasRoom = hasRoom
        streams.awaitRoom = awaitRoom
    }

    package func streamChanged(_ stream: StreamBuffer) {
        guard let channel = channels[ChannelStream.key(stream.name)] else { return }
        streams.streamChanged(stream, in: channel, &context)
    }

    /// Handles a socket that has room for more of a stream again.
    package func roomBecameFree(_ slot: Slot) {
        guard let connection = connection(slot) else { return }
        for membership in connection.memberships where membership.streamPlace?.waits == true {
            streams.resumeWatcher(membership, &context)
        }
    }

    /// Handles the answer to an `Action.stream`.
    package func streamAnswered(_ id: Int, _ answer: StreamAnswer) { streams.receiveAnswer(id, answer, &context) }

    /// Handles the answer to an `Action.store`: the row's ID, or nil.
    package func storeAnswered(_ id: Int, as row: String?) { persistence.receiveAnswer(id, row, &context) }

    // MARK: The context

    /// The effects to execute, in order. The gateway takes them after every call.
    package var actions: [Action] {
        get { context.actions }
        _modify { yield &context.actions }
    }
    package internal(set) var counters: HubCounters {
        get { context.counters }
        _modify { yield &context.counters }
    }
    /// For the metrics: refusals, by limit.
    package var refused: [Limit: Int] { context.refused }
    /// For the metrics: delayed reads, by rate.
    package var slowed: [Pace: Int] { context.slowed }

    func connection(_ slot: Slot) -> Connection? { context.connection(slot) }

    package func advanceTime(to now: HubTime) { context.advanceTime(to: now) }
    /// There are failures to report.
    package var hasFailures: Bool { !context.failures.isEmpty }

    /// The failures since the last call, each with its connection; when there are more than some dozen at once, the
    /// rest are only counted.
    package func takeFailures() -> [(slot: Slot, failure: JoinFailure)] {
        defer { context.failures.removeAll() }
        return context.failures
    }

    package func countRefusal(_ refusal: Refusal) { context.countRefusal(refusal) }
}

/// State shared by the hubs of all loops, and in part with other rooms. Created once; every part is safe from any
/// thread.
package struct HubShared: Sendable {
    /// Clients that may come back for row changes they missed. The feed keeps what it refers to.
    package let recovery: SessionRegistry
    /// Broadcasts kept for clients that come back.
    package let history: HistoryStore
    /// The presences of members that were cut off.
    package let leases: PresenceLeases
    /// Records presence for a writer; nil if there is none.
    package let presenceLog: PresenceLog?
    /// Tracks which users are online; nil if not needed.
    package let users: UserPresence?
    /// The same for devices, by `DeviceKey`.
    package let devices: UserPresence?
    /// Tracks who is typing; nil if not needed.
    package let typing: TypingRegistry?
    /// The number of each user's sockets, here and on other hubs.
    package let userTally: UserTally
    /// Users barred from channels for a while.
    package let bars: ChannelBars
    /// Joins of Live Activities' channels; nil if no states are sent.
    package let summaryJoins: SummaryJoins?
    /// Answers who has certainly received which message; nil if not needed.
    package let receipts: ReceiptRegistry?
    /// Receipts to be written back to the application; nil if none are.
    package var receiptLog: ReceiptLog?
    /// Records events for a backend; nil if there is none.
    package var happenings: Happenings?
    /// Serves streams; nil if none are served.
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
