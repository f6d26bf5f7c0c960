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
    let loop: Int
    private(set) var limits: HubLimits
    let verifier: any TokenVerifier
    var random: any RandomNumberGenerator
    /// By slot.
    private(set) var connections: [Connection?] = []
    var channels: [ChannelKey: Channel] = [:]
    var groups: [ChangeGroupID: ChangeGroup] = [:]
    var serial = 0
    /// What the authority was asked and has not answered, and for whom.
    var questions: [AuthorizationID: Membership] = [:]
    /// Whose missed changes the feed is reading.
    var recoveries: [RecoveryID: Membership] = [:]
    /// Joins that are not answered yet, because something has to be known of who else is there.
    var arrivals: [Membership] = []
    let book: RecoveryBook
    let history: HistoryBook
    /// Bytes of kept messages that a socket was sent in this second.
    var historySent: [Slot: Int] = [:]
    /// Nil: users may have any number of sockets.
    let ledger: (any UserLedger)?
    private(set) var presenceRules: PresenceRules
    private(set) var typingRules: TypingRules
    let presences: PresenceBook
    /// What the lists of all channels hold.
    package internal(set) var presenceBytes = 0
    /// Nil: nobody writes down who is present.
    let presenceLog: PresenceLog?
    /// Nil: nobody asks who is online.
    let users: UserPresence?
    /// The same for their devices, by `DeviceKey`.
    let devices: UserPresence?
    /// Nil: nobody asks who types.
    let typingBoard: TypingBoard?
    /// Nil: nobody knows what Live Activities show.
    let summaryJoins: SummaryJoins?
    /// Applies the relays that have been posted to this hub, at once; set by whoever posts them. Not called back for
    /// anything but `apply`.
    package var hearOthers: () -> Void = {}
    /// Leases that the other loops have not heard of.
    var offers: [PresenceLease] = []
    var timetable = Timetable<HubDuty>()
    /// For the metrics: what was refused for a limit, and what was read later for a rate.
    package internal(set) var refused: [Limit: Int] = [:]
    package internal(set) var slowed: [Pace: Int] = [:]
    package internal(set) var counters = HubCounters()
    /// Up to where the feed's changes were passed on.
    package internal(set) var mark = 0
    /// The cursor of the last change that was passed on since the mark, where all before it was as well; nil if there was
    /// none.
    var passed: String?
    /// Since the mark something came that no cursor stands for: a change waits for a policy, or changes are gone.
    var isPassedInPart = false
    /// The time as it was told last.
    var latest = HubTime(monotonic: 0, unix: 0)
    /// What was received before this, by the hub's clock, may have waited for the hub.
    var lateUntil = Int64.min
    /// Bytes of what waits for its answers.
    package internal(set) var heldBytes = 0
    /// Whether changes are flowing from the database.
    var feedIsReady = false
    /// When connections without channels are looked for next; nil before the first tick.
    var nextSweep: Int64?
    /// No member's token runs out before this second (since 1970).
    var earliestExpiry = Int64.max
    /// Makes `phx_ref` unique among hubs.
    let refPrefix: String
    package private(set) var connectionCount = 0

    /// What is to be done, in order. The gateway takes them after every call.
    package var actions: [Action] = []

    package init(
        loop: Int, limits: HubLimits = HubLimits(), verifier: any TokenVerifier,
        random: any RandomNumberGenerator & Sendable, book: RecoveryBook = RecoveryBook(window: 0),
        history: HistoryBook? = nil, ledger: (any UserLedger)? = nil, presence: PresenceRules = PresenceRules(),
        typing: TypingRules = TypingRules(), presences: PresenceBook = PresenceBook(),
        presenceLog: PresenceLog? = nil, users: UserPresence? = nil, devices: UserPresence? = nil,
        typingBoard: TypingBoard? = nil, summaryJoins: SummaryJoins? = nil
    ) {
        self.loop = loop
        self.limits = limits
        self.verifier = verifier
        self.random = random
        self.book = book
        self.history = history ?? HistoryBook(limits: limits, window: 0)
        self.ledger = ledger
        presenceRules = presence
        typingRules = typing
        self.presences = presences
        self.presenceLog = presenceLog
        self.users = users
        self.devices = devices
        self.typingBoard = typingBoard
        self.summaryJoins = summaryJoins
        var generator: any RandomNumberGenerator = random
        refPrefix = String(generator.next(), radix: 36) + "-" + String(loop, radix: 36) + "-"
    }

    package var openQuestions: [AuthorizationID] { Array(questions.keys) }
    package var channelCount: Int { channels.count }
    package var groupCount: Int { groups.count }

    /// Whose connection it is: by the token at the door, or else of a channel that it is in. Nil where none names a user.
    package func user(of slot: Slot) -> String? { connection(slot)?.subject }

    /// Nil where nobody is connected.
    func connection(_ slot: Slot) -> Connection? {
        connections.indices.contains(Int(slot)) ? connections[Int(slot)] : nil
    }

    func nextSerial() -> Int {
        serial += 1
        return serial
    }

    /// Other limits and rules from here on. What was let in before stays, also where it would be too much now.
    package func adopt(_ limits: HubLimits, _ presence: PresenceRules, _ typing: TypingRules) {
        self.limits = limits
        presenceRules = presence
        typingRules = typing
    }

    // MARK: Connections

    /// - Parameters:
    ///   - isCounted: whether the door counted the socket among its user's.
    ///   - isPage: a browser opened it.
    package func connect(
        _ slot: Slot, version: ProtocolVersion, claims: Claims, isCounted: Bool = true, isPage: Bool = false
    ) {
        while connections.count <= Int(slot) { connections.append(nil) }
        let connection = Connection(slot, version: version, claims: claims, isPage: isPage, at: latest.monotonic)
        connections[Int(slot)] = connection
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
        connections[Int(slot)] = nil
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

    // MARK: Answering

    /// Answers a frame that is about no membership.
    func reply(
        to frame: ClientFrame, joinRef: JSON, on connection: Connection, ok: Bool,
        response: [UInt8] = Array("{}".utf8)
    ) {
        let frames = ServerFrame(connection.version, topic: JSONString.encode(frame.topic))
        let answer = frames.reply(joinRef: joinRef, ref: frame.ref, ok: ok, response: response)
        actions.append(.send(answer, to: connection.slot))
    }

    /// Refuses a frame that is about no membership.
    func refuse(_ frame: ClientFrame, joinRef: JSON = .null, on connection: Connection, _ refusal: Refusal) {
        countRefusal(refusal)
        reply(to: frame, joinRef: joinRef, on: connection, ok: false, response: refusal.response)
    }

    /// Answers a message of a member.
    func reply(to ref: JSON, of membership: Membership, ok: Bool, response: [UInt8] = Array("{}".utf8)) {
        let reply = membership.frames.reply(joinRef: membership.joinRef, ref: ref, ok: ok, response: response)
        actions.append(.send(reply, to: membership.slot))
    }

    /// Refuses a message of a member. Without a ref, too: clients match replies to their refs and overlook one with
    /// `null`, but it is on the wire for whoever looks; a `system` error would end the channel in the Python client.
    func refuse(_ ref: JSON, of membership: Membership, _ refusal: Refusal) {
        countRefusal(refusal)
        reply(to: ref, of: membership, ok: false, response: refusal.response)
    }

    /// A `system` message to one member.
    func system(
        _ membership: Membership, extension name: String, ok: Bool, message: String, cursor: String? = nil
    ) {
        var payload = Self.systemPayload(membership.channel.key, extension: name, ok: ok, message: message)
        if let cursor { payload = payload.dropLast() + Array(",\"cursor\":\"\(cursor)\"}".utf8) }
        let frame = membership.frames.push("system", joinRef: membership.joinRef, payload: payload)
        actions.append(.send(frame, to: membership.slot))
    }

    /// All four keys are required by the Python client.
    static func systemPayload(_ key: ChannelKey, extension name: String, ok: Bool, message: String) -> [UInt8] {
        var out = Array("{\"extension\":".utf8)
        JSONString.encode(name, into: &out)
        out += (ok ? ",\"status\":\"ok\",\"message\":" : ",\"status\":\"error\",\"message\":").utf8
        JSONString.encode(message, into: &out)
        out += ",\"channel\":".utf8
        JSONString.encode(key.name, into: &out)
        out.append(UInt8(ascii: "}"))
        return out
    }

    /// Sends one event to an audience, encoded once for each protocol version that is in it.
    func fanOut(
        _ event: StaticString, _ payload: [ArraySlice<UInt8>], in channel: Channel, to audience: Audience,
        except: Slot? = nil, kind: FrameKind = .message
    ) {
        if !audience.isEmpty {
            count(event, payload, in: channel, receivers: audience.count - (except == nil ? 0 : 1))
        }
        for version in [ProtocolVersion.v1, .v2] where !audience[version].isEmpty {
            let frame = channel.frames(version).push(event, payload: payload)
            actions.append(.fanOut(frame, to: audience[version], except: except, kind))
        }
    }
}
