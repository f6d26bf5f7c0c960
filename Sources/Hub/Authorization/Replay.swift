package import Wire

/// `config.broadcast.replay` of a join: messages that were sent before it (wire-protocol B).
package struct ReplayRequest: Sendable, Equatable {
    /// Milliseconds since 1970; nothing that was sent earlier.
    package let since: Int
    /// The newest so many.
    package let limit: Int

    /// The original's, for one join.
    package static let largestLimit = 25
    /// The years 0 to 9999, as the original takes them; Postgres' timestamps reach further.
    private static let years = -62_167_219_200_000...253_402_300_799_999

    package init(since: Int = 0, limit: Int = largestLimit) {
        self.since = since
        self.limit = limit
    }

    /// Nil where it is not `{since?: integer, limit?: integer}`. Without `since` it begins at 0; a limit beyond what is served takes
    /// the nearest one that is: both as in the original (supabase/realtime 2.174).
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

/// A row of `realtime.messages` that is sent once more, to one member.
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

    /// As the original sends it: JSON as a text frame that names the join, bytes as a frame of kind 4. Nil where the
    /// member has no form for it: bytes in version 1, or names longer than a binary frame can carry.
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

/// What a join that asked for a replay has coming to it before it is answered.
///
/// **Nothing is lost or doubled.** A message that is committed while the join is under way is visible to the replay's
/// query, or it is not. If it is not, the feed brings it after the query began, which is after the question was asked;
/// from that moment on `live` keeps what the feed brings to the channel, until the member hears what comes live. If it is, the feed
/// brings it, too: before the reply, then it is among `live` and dropped there by its id; or after, then the channel's
/// `replayed` keeps it from this member. What was visible and not replayed, because it lies beyond the limit, and arrives
/// by the feed in these moments is sent: it is as live as any other.
struct PendingReplay {
    let request: ReplayRequest
    /// The answer to the question.
    var messages: [ReplayedMessage] = []
    private(set) var live: [DatabaseBroadcast] = []
    private(set) var bytes = 0
    /// There was more than can be kept; the join is refused rather than something left out.
    private(set) var overflowed = false

    init(request: ReplayRequest) {
        self.request = request
    }

    /// - Returns: by how many bytes more is kept; negative where all was given up.
    mutating func keep(_ message: DatabaseBroadcast, limits: HubLimits, room: Int) -> Int {
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

/// Who waits for a replay in one channel, and what was replayed to whom.
struct ChannelReplays {
    /// Members whose join waits for messages to be replayed.
    private(set) var waiting: [Membership] = []
    /// By a message's id: to whom it was replayed, and so must not come again.
    private var sent: [Name: Set<Slot>] = [:]

    mutating func beginWait(of membership: Membership) {
        if !waiting.contains(where: { $0 === membership }) { waiting.append(membership) }
    }

    mutating func endWait(of membership: Membership) { waiting.removeAll { $0 === membership } }

    mutating func note(_ id: String, sentTo slot: Slot) { sent[Name(id), default: []].insert(slot) }

    mutating func forget(_ id: String, sentTo slot: Slot) {
        let id = Name(id)
        sent[id]?.remove(slot)
        if sent[id]?.isEmpty == true { sent[id] = nil }
    }

    /// To whom a message was replayed; nil where it was to nobody.
    func receivers(of id: String) -> Set<Slot>? { sent[Name(id)] }
}

/// Messages that were sent before a member joined (wire-protocol B). Why none is lost or doubled: `PendingReplay`.
extension Authorization {
    /// A message from SQL, for the members that wait for the answer to a join with a replay.
    ///
    /// - Parameter withHistory: whether it is passed on to members with history or to the others, who may hear it at
    ///   different moments.
    mutating func keepForReplays(
        _ message: DatabaseBroadcast, in channel: LocalChannel, withHistory: Bool, _ limits: HubLimits
    ) {
        for membership in channel.replays.waiting {
            guard let grants = membership.grants, (membership.history?.isOff == false) == withHistory
            else { continue }
            heldBytes += grants.replay?.keep(message, limits: limits, room: limits.heldBytes - heldBytes) ?? 0
        }
    }

    /// Sends what was replayed, and then what came by the feed in the meantime. Before the member hears what comes live.
    mutating func sendReplay(_ grants: ChannelGrants, to membership: Membership, _ hub: inout HubContext) {
        guard let replay = grants.replay else { return }
        let (channel, version) = (membership.channel, membership.version)
        for message in replay.messages {
            guard let frame = message.frame(version, joinRef: membership.joinRef, in: channel) else { continue }
            hub.send(frame, to: membership)
        }
        let ids = replay.messages.map(\.id)
        for message in replay.live where !ids.contains(message.id) {
            if let frame = message.broadcast.frame(version, in: channel) { hub.send(frame, to: membership) }
        }
        endReplay(grants, of: membership)
        grants.replayed = ids
        for id in ids { channel.replays.note(id, sentTo: membership.slot) }
    }

    /// Forgets all that a member's replay left behind.
    mutating func endReplay(_ grants: ChannelGrants, of membership: Membership) {
        let channel = membership.channel
        if let replay = grants.replay {
            heldBytes -= replay.bytes
            grants.replay = nil
            channel.replays.endWait(of: membership)
        }
        for id in grants.replayed { channel.replays.forget(id, sentTo: membership.slot) }
        grants.replayed = []
    }
}
