import Wire

/// What a message tells members who asked for history, in its `meta`: `history`, the id to come back with, and `replayed`
/// on one that is sent again.
///
/// In `meta` because clients hand that on to applications, in text and in binary frames alike, and under a key of its own
/// because `id` there is the message's own: SQL and HTTP give it, and replays are told apart by it.
struct HistoryMeta {
    let id: HistoryID
    let isReplay: Bool

    /// The object itself, with what the message's own one says.
    func joined(with own: JSON?) -> [UInt8] {
        var writer = JSONWriter(reserving: 64)
        writer.object { writer in
            own?.forEachMember { member in
                if !member.isNamed("history"), !member.isNamed("replayed") { Self.copy(member, to: &writer) }
            }
            if isReplay { writer.member("replayed", true) }
            writer.member("history", id.text)
        }
        return writer.bytes
    }

    /// A `broadcast` event's payload with the object in it. The sender's text stays as it is but for a `meta` of its own:
    /// a key that occurs twice is read in more than one way.
    /// What is no object has no room for it, and is passed on as it is.
    func spliced(into payload: [UInt8]) -> [UInt8] {
        let object = JSON(trusted: payload[...])
        guard object.kind == .object else { return payload }
        guard let own = object["meta"] else {
            var out: [UInt8] = []
            out.reserveCapacity(payload.count + 64)
            out += object.bytes.dropLast()
            out += (object.isEmptyObject ? "\"meta\":" : ",\"meta\":").utf8
            out += joined(with: nil)
            out.append(UInt8(ascii: "}"))
            return out
        }
        var writer = JSONWriter(reserving: payload.count + 64)
        writer.object { writer in
            object.forEachMember { if !$0.isNamed("meta") { Self.copy($0, to: &writer) } }
            writer.key("meta")
            writer.value(json: joined(with: own))
        }
        return writer.bytes
    }

    private static func copy(_ member: JSON.Member, to writer: inout JSONWriter) {
        writer.key(raw: member.rawKey)
        writer.value(json: member.value.bytes)
    }
}

extension JSON {
    fileprivate var isEmptyObject: Bool {
        var isEmpty = true
        forEachMember { _ in isEmpty = false }
        return isEmpty
    }
}

extension BroadcastMessage {
    /// The message as members with history get it. Where a binary frame has no room for the id, it goes without one: who
    /// comes back with an older id gets it twice.
    func frame(_ version: ProtocolVersion, with meta: HistoryMeta, in channel: LocalChannel) -> Frame? {
        let frames = channel.frames(version, isBehindPosition: true)
        switch self {
        case .text(let payload): return frames.push("broadcast", payload: meta.spliced(into: payload))
        case .user(let user):
            let own = user.metadata.map { JSON(trusted: $0[...]) }
            let marked = UserBroadcast(
                event: user.event, encoding: user.encoding, payload: user.payload, metadata: meta.joined(with: own))
            if version == .v2, let frame = ServerFrame.userBroadcast(marked, topic: channel.key.topic) { return frame }
            if let payload = marked.textPayload() { return frames.push("broadcast", payload: payload) }
            return frames.rawBroadcast(marked) ?? frame(version, in: channel, isBehindPosition: true)
        }
    }
}

/// Names a message of a channel's history, for a client to come back with: opaque to it, and JSON text without escapes.
///
/// A history begins when somebody asks for one and ends with the process, or when nobody was in the channel for a while.
/// So an id says which history it belongs to; positions in different ones have nothing to do with each other.
struct HistoryID: Equatable, Sendable {
    /// Chosen by chance, so that no two histories have the same.
    let history: UInt64
    /// Counts the messages of the history from 1. Zero lies before all of them.
    let position: Int

    init(history: UInt64, position: Int) {
        self.history = history
        self.position = position
    }

    init?(_ text: String) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2, let history = UInt64(parts[0], radix: 36),
            let position = Int(parts[1], radix: 36), 0...Self.greatest ~= position
        else { return nil }
        self.init(history: history, position: position)
    }

    /// Positions are added to others.
    static let greatest = Int.max / 2

    var text: String { String(history, radix: 36) + "." + String(position, radix: 36) }
}

/// `config.broadcast.history` of a join: the channel's broadcasts are to be kept for those who drop off and come back.
///
/// `true`, or `{"limit": messages, "seconds": seconds, "after": id}`, all of them optional. What is missing or odd takes
/// the most that the hub keeps, as everything in a join's config does: an odd config keeps nobody out.
struct HistoryRequest {
    /// How many messages the channel is to keep, and for how many seconds. The most that any member asked for counts.
    var limit: Int?
    var seconds: Int?
    /// The id of the last message that the client has. Nil where it names none.
    var after: String?

    /// Nil where no history is asked for.
    init?(_ json: JSON?) {
        guard let json else { return nil }
        if json.kind == .object {
            limit = json["limit"]?.int
            seconds = json["seconds"]?.int
            if let after = json["after"], !after.isNull { self.after = after.string ?? after.description }
        } else {
            guard json.bool ?? (json.string?.lowercased() == "true") else { return nil }
        }
    }
}
