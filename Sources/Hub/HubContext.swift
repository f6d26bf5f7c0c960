import Wire

/// The services that a hub offers its features: the time, its members, and ways to send something now or do something
/// later.
///
/// A feature (`Typing`, …) is a struct that owns its rules and what it shares with other loops' hubs. Its state for a
/// channel or a member is one value that `LocalChannel` or `Membership` keeps for it. `Hub` calls it with an event and
/// this context; the feature decides, and appends effects to `actions`. So it can be tested without a hub, and no
/// feature reaches into another: `Hub` brings together what concerns two of them.
///
/// A value, passed `inout`, so that no call allocates for it.
package struct HubContext {
    /// The hub's index in the process.
    let loop: Int
    /// Other hubs act as one with this one.
    let hasPeers: Bool
    var limits: HubLimits
    /// The time that the hub was last told.
    package private(set) var now = HubTime(monotonic: 0, unix: 0)
    /// Messages received before this time, in monotonic milliseconds, may have waited for the hub, which stood still.
    private(set) var lateUntil = Int64.min
    var random: any RandomNumberGenerator
    /// Effects to execute, in order.
    package var actions: [Action] = []
    /// Duties to perform later.
    private var timers = TimerQueue<HubDuty>()
    package internal(set) var counters = HubCounters()
    /// Failures to report to the operator.
    var failures: [(slot: Slot, failure: JoinFailure)] = []
    private static let mostFailures = 64
    /// The number of refusals, by limit.
    private(set) var refused: [Limit: Int] = [:]
    /// The number of delayed reads, by rate.
    var slowed: [Pace: Int] = [:]
    /// By slot.
    private(set) var connections: [Connection?] = []
    private var serial = 0
    /// Makes `phx_ref` unique among hubs.
    private let refPrefix: String

    package init(loop: Int, hasPeers: Bool = false, limits: HubLimits, random: any RandomNumberGenerator) {
        self.loop = loop
        self.hasPeers = hasPeers
        self.limits = limits
        self.random = random
        var generator = random
        refPrefix = String(generator.next() as UInt64, radix: 36) + "-" + String(loop, radix: 36) + "-"
    }

    /// Returns a number that this hub has not used yet.
    mutating func nextSerial() -> Int {
        serial += 1
        return serial
    }

    package mutating func nextMember() -> MemberID { MemberID(loop: loop, serial: nextSerial()) }

    /// Returns a `phx_ref` that no hub has used yet.
    mutating func nextRef() -> Name { Name(refPrefix + String(nextSerial(), radix: 36)) }

    // MARK: Time

    /// Milliseconds after which an answer is late. Clients wait for 10 s from sending the join.
    static let promptness: Int64 = 4000

    /// Sets the time. A jump means that the hub stood still, and messages that come now may have waited since then.
    package mutating func advanceTime(to time: HubTime) {
        if now.monotonic > 0, time.monotonic - now.monotonic > Self.promptness {
            lateUntil = time.monotonic + 1000
        }
        now = time
    }

    /// Schedules a duty for that time, in monotonic milliseconds; an earlier schedule stays in force.
    mutating func scheduleDuty(_ duty: HubDuty, at time: Int64) { timers.ensureDue(duty, at: time) }

    /// When the next duty is due, in monotonic milliseconds. The duty may have been done by then.
    package var nextDue: Int64? { timers.next }

    /// Returns a duty whose time has come.
    mutating func nextDuty() -> HubDuty? { timers.takeDue(at: now.monotonic) }

    // MARK: Connections

    package mutating func addConnection(_ connection: Connection) {
        while connections.count <= Int(connection.slot) { connections.append(nil) }
        connections[Int(connection.slot)] = connection
    }

    mutating func removeConnection(_ connection: Connection) { connections[Int(connection.slot)] = nil }

    /// Nil if the slot has no connection.
    func connection(_ slot: Slot) -> Connection? {
        connections.indices.contains(Int(slot)) ? connections[Int(slot)] : nil
    }

    package mutating func addMember(_ membership: Membership) {
        membership.connection.memberships.append(membership)
        membership.channel.memberCount += 1
        counters.memberships += 1
    }

    /// - Returns: whether it was there.
    mutating func removeMember(_ membership: Membership) -> Bool {
        guard membership.connection.memberships.remove(membership) else { return false }
        membership.channel.memberCount -= 1
        counters.memberships -= 1
        return true
    }

    /// Returns the member of a channel behind a slot of one of its audiences.
    func member(_ slot: Slot, of channel: LocalChannel) -> Membership? { connection(slot)?.memberships[channel] }

    /// Returns the slot of a sender that wants no echo, if it is a member on this loop.
    func slot(of sender: MessageSender, in channel: LocalChannel) -> Slot? {
        guard sender.member.loop == loop, member(sender.slot, of: channel)?.member == sender.member else { return nil }
        return sender.slot
    }

    var openConnections: some Sequence<Connection> { connections.lazy.compactMap { $0 } }

    // MARK: Sending

    mutating func sendFrame(_ frame: Frame, to membership: Membership, _ kind: FrameKind = .message) {
        actions.append(.send(frame, to: membership.slot, kind))
    }

    /// Asks sockets for a sign of life.
    mutating func pingDoubts(_ doubts: [ClientTrace]) {
        if !doubts.isEmpty { actions.append(.ping(doubts.map(\.acknowledged.socket))) }
    }

    mutating func sendRelay(_ relay: Relay) { actions.append(.relay(relay)) }

    /// Answers a frame that belongs to no membership.
    mutating func reply(
        to frame: ClientFrame, joinRef: JSON, on connection: Connection, ok: Bool,
        response: [UInt8] = Array("{}".utf8)
    ) {
        let frames = ServerFrame(connection.version, topic: JSONString.encode(frame.topic))
        let answer = frames.reply(joinRef: joinRef, ref: frame.ref, ok: ok, response: response)
        actions.append(.send(answer, to: connection.slot))
    }

    /// Refuses a frame that belongs to no membership.
    mutating func refuseFrame(
        _ frame: ClientFrame, joinRef: JSON = .null, on connection: Connection, _ refusal: Refusal
    ) {
        countRefusal(refusal)
        reply(to: frame, joinRef: joinRef, on: connection, ok: false, response: refusal.response)
    }

    /// Answers a member's message.
    mutating func reply(
        to ref: JSON, of membership: Membership, ok: Bool, response: [UInt8] = Array("{}".utf8)
    ) {
        sendFrame(
            membership.frames.reply(joinRef: membership.joinRef, ref: ref, ok: ok, response: response), to: membership)
    }

    /// Refuses a join.
    mutating func refuseJoin(_ ref: JSON, of membership: Membership, _ refusal: Refusal) {
        countRefusal(refusal)
        reply(to: ref, of: membership, ok: false, response: refusal.response)
    }

    /// Refuses a member's message. The operator is told of each refusal, the client only if it waits for an answer: an
    /// unexpected error makes supabase-kt deaf for half a minute, and the Elixir client gives its channel up.
    mutating func refuseMessage(_ kind: MessageKind, _ ref: JSON, of membership: Membership, _ refusal: Refusal) {
        countRefusal(refusal)
        reportFailure(JoinFailure(refusal, of: .message), on: membership.slot)
        membership.channel.traffic.recordEvent(refused: kind, refusal, at: now)
        guard kind.isAnswered(membership, ref) else { return }
        let response = kind == .broadcast ? refusal.broadcastResponse : refusal.response
        reply(to: ref, of: membership, ok: false, response: response)
    }

    /// Counts a refusal for the metrics, if a limit is the reason.
    mutating func countRefusal(_ refusal: Refusal) {
        if case .over(let limit, _) = refusal { refused[limit, default: 0] += 1 }
    }

    /// Counts a failure and reports it to the operator.
    mutating func reportFailure(_ failure: JoinFailure, on slot: Slot) {
        switch failure.subject {
        case .subscription: counters.joinFailures[failure.reason, default: 0] += 1
        case .message: counters.messagesRefused[failure.reason, default: 0] += 1
        }
        if failures.count < Self.mostFailures { failures.append((slot, failure)) }
    }

    /// Sends a `system` message to one member.
    mutating func sendSystemMessage(
        _ membership: Membership, extension name: String, ok: Bool, message: String, cursor: String? = nil,
        more: (inout JSONWriter) -> Void = { _ in }
    ) {
        var payload = JSONWriter(reserving: 256)
        payload.object {
            // The first four are required by the Python client.
            $0.writeMember("extension", name)
            $0.writeMember("status", ok ? "ok" : "error")
            $0.writeMember("message", message)
            $0.writeMember("channel", String(membership.channel.key.name))
            if let cursor { $0.writeMember("cursor", cursor) }
            more(&$0)
        }
        sendFrame(membership.frames.push("system", joinRef: membership.joinRef, payload: payload.bytes), to: membership)
    }

    /// Sends one event to an audience, encoded once for each protocol version in it.
    mutating func fanOut(
        _ event: StaticString, _ payload: [ArraySlice<UInt8>], in channel: LocalChannel, to audience: Audience,
        kind: FrameKind = .message
    ) {
        guard !audience.isEmpty else { return }
        channel.traffic.countEvent(event, payload, receivers: audience.count, at: now)
        let isBehindPosition = kind.needsAcknowledgement
        audience.forEachVersion { version, slots in
            let frame = channel.frames(version, isBehindPosition: isBehindPosition).push(event, payload: payload)
            fanOutFrame(frame, version, to: slots, kind, isBehindPosition: isBehindPosition)
        }
    }

    /// Sends a message to an audience, encoded only for the versions in it: a `.user` message is parsed for version 1
    /// alone.
    ///
    /// - Parameter except: the sender, if it wants no echo.
    mutating func deliverBroadcast(
        _ message: BroadcastMessage, in channel: LocalChannel, to audience: Audience, except: Slot?,
        kind: FrameKind = .message
    ) {
        let receivers = audience.count - (except == nil ? 0 : 1)
        if receivers > 0 { channel.traffic.countBroadcast(message, receivers: receivers, at: now) }
        audience.forEachVersion { version, slots in
            guard let frame = message.frame(version, in: channel) else { return }
            let slots = version.eventFormat == nil ? slots : readers(of: message, among: slots)
            if !slots.isEmpty { actions.append(.fanOut(frame, to: slots, except: except, kind)) }
        }
    }
}

/// Identifies one member of one channel; unique among the loops of a process.
///
/// Also identifies what the member tracks. A presence may outlive its member: a member that takes it over uses the same
/// ID.
package struct MemberID: Hashable, Sendable {
    package let loop: Int
    package let serial: Int

    package init(loop: Int, serial: Int) {
        self.loop = loop
        self.serial = serial
    }
}

/// Totals since the hub's start, for the metrics: plain integers, written only by its loop.
package struct HubCounters: Sendable {
    /// Accepted and refused joins.
    package internal(set) var joins = 0
    package internal(set) var joinsRefused = 0
    /// Refused joins, and failures of row changes after accepted ones, by reason.
    package internal(set) var joinFailures: [JoinFailure.Reason: Int] = [:]
    /// Refused messages, by reason.
    package internal(set) var messagesRefused: [JoinFailure.Reason: Int] = [:]
    /// Messages with the `join_ref` of a join that was replaced by another.
    package internal(set) var staleMessages = 0
    /// Current memberships.
    package internal(set) var memberships = 0
    /// Members that asked for what they missed, by outcome: `resumed`, or the reason why not.
    package internal(set) var recoveries: [String: Int] = [:]
    /// Presences that came and went; the difference, over all loops, is the current number.
    package internal(set) var presenceJoins = 0
    package internal(set) var presenceLeaves = 0
    /// Members that were cut off and came back within their window.
    package internal(set) var presenceLeavesAvoided = 0
    /// Announced starts of typing.
    package internal(set) var typingStarts = 0
    /// Members currently watching streams, by WebSockets and by event streams.
    package internal(set) var streamWatchers = (sockets: 0, readers: 0)

    package init() {}

    package static func + (one: HubCounters, other: HubCounters) -> HubCounters {
        var sum = one
        sum.joins += other.joins
        sum.joinsRefused += other.joinsRefused
        sum.joinFailures.merge(other.joinFailures, uniquingKeysWith: +)
        sum.messagesRefused.merge(other.messagesRefused, uniquingKeysWith: +)
        sum.staleMessages += other.staleMessages
        sum.memberships += other.memberships
        sum.recoveries.merge(other.recoveries, uniquingKeysWith: +)
        sum.presenceJoins += other.presenceJoins
        sum.presenceLeaves += other.presenceLeaves
        sum.presenceLeavesAvoided += other.presenceLeavesAvoided
        sum.typingStarts += other.typingStarts
        sum.streamWatchers.sockets += other.streamWatchers.sockets
        sum.streamWatchers.readers += other.streamWatchers.readers
        return sum
    }
}
