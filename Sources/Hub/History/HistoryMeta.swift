import Wire

/// The marks on a message to members that asked for history, in its `meta`: `history`, the ID to come back with, and
/// `replayed` on a message that is sent again.
///
/// They are in `meta` because clients hand it on to applications, in text and in binary frames alike, and under a key
/// of their own because `id` there is the message's own: SQL and HTTP set it, and replays are told apart by it.
struct HistoryMeta {
    let id: HistoryID
    let isReplay: Bool

    /// Returns the object, including the members of the message's own `meta`.
    func joined(with own: JSON?) -> [UInt8] {
        var writer = JSONWriter(reserving: 64)
        writer.object { writer in
            own?.forEachMember { member in
                if !member.isNamed("history"), !member.isNamed("replayed") { Self.copyMember(member, to: &writer) }
            }
            if isReplay { writer.writeMember("replayed", true) }
            writer.writeMember("history", id.text)
        }
        return writer.bytes
    }

    /// Returns a `broadcast` event's payload with the object added. The sender's text stays unchanged except for a
    /// `meta` of its own: a key that occurs twice is read in more than one way. A payload that is not an object has no
    /// room for it and is passed on as it is.
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
            object.forEachMember { if !$0.isNamed("meta") { Self.copyMember($0, to: &writer) } }
            writer.writeKey("meta")
            writer.writeValue(json: joined(with: own))
        }
        return writer.bytes
    }

    private static func copyMember(_ member: JSON.Member, to writer: inout JSONWriter) {
        writer.writeKey(raw: member.rawKey)
        writer.writeValue(json: member.value.bytes)
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
    /// Encodes the message for members with history. If a binary frame has no room for the ID, the frame goes without
    /// one: a client that comes back with an older ID gets the message twice.
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

/// Names a message of a channel's history, for a client to come back with: opaque to clients, and JSON text without
/// escapes.
///
/// A history begins when a join first asks for one, and ends with the process or when the channel has been empty for a
/// while. So an ID says which history it belongs to; positions in different histories are unrelated.
struct HistoryID: Equatable, Sendable {
    /// Random, so that no two histories share it.
    let history: UInt64
    /// Counts the history's messages from 1; zero is before all of them.
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

    /// Half of the range, because positions are added to others.
    static let greatest = Int.max / 2

    var text: String { String(history, radix: 36) + "." + String(position, radix: 36) }
}

/// The `config.broadcast.history` of a join, which asks to keep the channel's broadcasts for clients that drop off and
/// come back.
///
/// `true`, or `{"limit": messages, "seconds": seconds, "after": id}`, all of them optional. Missing or odd values
/// default to the most that the hub keeps; as elsewhere in a join's config, an odd value never keeps a client out.
struct HistoryRequest {
    /// The number of messages to keep, and for how many seconds. The highest values that any member asked for apply.
    var limit: Int?
    var seconds: Int?
    /// The ID of the last message that the client has; nil if it names none.
    var after: String?

    /// Nil if no history is asked for.
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
