package import Wire

/// The `config.broadcast.replay` of a join: a request for messages sent before it (wire-protocol B).
package struct ReplayRequest: Sendable, Equatable {
    /// The earliest time of a message, in milliseconds since 1970.
    package let since: Int
    /// The maximum number of messages; the newest are taken.
    package let limit: Int

    /// The original's limit for one join.
    package static let largestLimit = 25
    /// The years 0 to 9999, as the original accepts them; Postgres' timestamps reach further.
    private static let years = -62_167_219_200_000...253_402_300_799_999

    package init(since: Int = 0, limit: Int = largestLimit) {
        self.since = since
        self.limit = limit
    }

    /// Returns nil unless the JSON is `{since?: integer, limit?: integer}`. `since` defaults to 0, and an out-of-range
    /// limit is clamped: both as in the original (supabase/realtime 2.174).
    package init?(_ json: JSON) {
        guard json.kind == .object else { return nil }
        var since = 0
        if let wish = json["since"], !wish.isNull {
            guard let number = wish.int, Self.years.contains(number) else { return nil }
            since = number
        }
        var limit = Self.largestLimit
        if let wish = json["limit"], !wish.isNull {
            guard let number = wish.int else { return nil }
            limit = min(max(number, 1), Self.largestLimit)
        }
        self.init(since: since, limit: limit)
    }
}

/// A row of `realtime.messages` that is sent again, to one member.
package struct ReplayedMessage: Sendable {
    package let id: String
    package let event: String
    package let body: Body

    package enum Body: Sendable {
        /// The text of a JSON value.
        case json([UInt8])
        case binary([UInt8])
    }

    package init(id: String, event: String, body: Body) {
        self.id = id
        self.event = event
        self.body = body
    }

    private var meta: [UInt8] {
        Array("{\"replayed\":true,\"id\":".utf8) + JSONString.encode(id) + [UInt8(ascii: "}")]
    }

    /// Encodes the message as the original does: JSON as a text frame that names the join, bytes as a frame of kind 4.
    /// Nil if the member's version cannot carry it: bytes in version 1, or names too long for a binary frame.
    func frame(_ version: ProtocolVersion, joinRef: JSON, in channel: LocalChannel) -> Frame? {
        switch body {
        case .json(let payload):
            let user = UserBroadcast(event: event, encoding: .json, payload: payload[...], metadata: meta)
            return user.textPayload().map { channel.frames(version).push("broadcast", joinRef: joinRef, payload: $0) }
        case .binary(let payload):
            let user = UserBroadcast(event: event, encoding: .raw, payload: payload[...], metadata: meta)
            guard version == .v2 else { return channel.frames(version).rawBroadcast(user) }
            return ServerFrame.userBroadcast(user, topic: channel.key.topic)
        }
    }
}

/// The messages a join with a replay will receive before its reply.
///
/// **Nothing is lost or duplicated.** A message that is committed while the join is in progress is either visible to
/// the replay's query or not. If not, the feed delivers it after the query began, which is after the question was
/// asked; from that moment `live` collects the channel's messages from the feed, until the member hears live ones. If
/// it is visible, the feed delivers it as well: before the reply, in which case it is in `live` and dropped there by
/// its ID, or afterwards, in which case the channel's `replayed` withholds it from this member. A message that was
/// visible but beyond the replay's limit, and that the feed delivers at this moment, is sent: it is as live as any
/// other.
struct PendingReplay {
    let request: ReplayRequest
    /// The replayed messages, once the question is answered.
    var messages: [ReplayedMessage] = []
    private(set) var live: [DatabaseBroadcast] = []
    private(set) var bytes = 0
    /// More messages arrived than can be kept; the join is refused so that nothing is silently left out.
    private(set) var overflowed = false

    init(request: ReplayRequest) {
        self.request = request
    }

    /// - Returns: the change in kept bytes; negative if everything was dropped.
    mutating func keepLive(_ message: DatabaseBroadcast, limits: HubLimits, room: Int) -> Int {
        guard !overflowed else { return 0 }
        let size = message.broadcast.bytes
        guard live.count < limits.heldPerMember, bytes + size <= limits.payloadBytes, size <= room else {
            overflowed = true
            live = []
            defer { bytes = 0 }
            return -bytes
        }
        live.append(message)
        bytes += size
        return size
    }
}

extension BroadcastMessage {
    fileprivate var bytes: Int { MemberWrite.broadcast(self).bytes }
}

/// Members waiting for a replay in one channel, and the messages replayed to each.
struct ChannelReplays {
    /// Members whose join waits for the replay.
    private(set) var waiting: [Membership] = []
    /// The slots that received each replayed message and must not get it again, by message ID.
    private var sent: [Name: Set<Slot>] = [:]

    mutating func beginWait(of membership: Membership) {
        if !waiting.contains(where: { $0 === membership }) { waiting.append(membership) }
    }

    mutating func endWait(of membership: Membership) { waiting.removeAll { $0 === membership } }

    mutating func recordReplay(_ id: String, sentTo slot: Slot) { sent[Name(id), default: []].insert(slot) }

    mutating func removeReplay(_ id: String, sentTo slot: Slot) {
        let id = Name(id)
        sent[id]?.remove(slot)
        if sent[id]?.isEmpty == true { sent[id] = nil }
    }

    /// Returns the slots a message was replayed to; nil if none.
    func receivers(of id: String) -> Set<Slot>? { sent[Name(id)] }
}

/// Messages sent before a member joined (wire-protocol B). `PendingReplay` explains why none is lost or duplicated.
extension Authorization {
    /// Keeps a message from SQL for members whose join with a replay is still unanswered.
    ///
    /// - Parameter withHistory: whether the message is going to members with history or to the others, which may hear
    ///   it at different moments.
    mutating func keepForReplays(
        _ message: DatabaseBroadcast, in channel: LocalChannel, withHistory: Bool, _ limits: HubLimits
    ) {
        for membership in channel.replays.waiting {
            guard let grants = membership.grants, (membership.history?.isOff == false) == withHistory
            else { continue }
            heldBytes += grants.replay?.keepLive(message, limits: limits, room: limits.heldBytes - heldBytes) ?? 0
        }
    }

    /// Sends the replay, then the messages the feed delivered meanwhile. Call before the member starts hearing live
    /// messages.
    mutating func sendReplay(_ grants: ChannelGrants, to membership: Membership, _ hub: inout HubContext) {
        guard let replay = grants.replay else { return }
        let (channel, version) = (membership.channel, membership.version)
        for message in replay.messages {
            guard let frame = message.frame(version, joinRef: membership.joinRef, in: channel) else { continue }
            hub.sendFrame(frame, to: membership)
        }
        let ids = replay.messages.map(\.id)
        for message in replay.live where !ids.contains(message.id) {
            if let frame = message.broadcast.frame(version, in: channel) { hub.sendFrame(frame, to: membership) }
        }
        endReplay(grants, of: membership)
        grants.replayed = ids
        for id in ids { channel.replays.recordReplay(id, sentTo: membership.slot) }
    }

    /// Discards everything a member's replay left behind.
    mutating func endReplay(_ grants: ChannelGrants, of membership: Membership) {
        let channel = membership.channel
        if let replay = grants.replay {
            heldBytes -= replay.bytes
            grants.replay = nil
            channel.replays.endWait(of: membership)
        }
        for id in grants.replayed { channel.replays.removeReplay(id, sentTo: membership.slot) }
        grants.replayed = []
    }
}
