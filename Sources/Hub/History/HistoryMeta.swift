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
        var out: [UInt8] = [UInt8(ascii: "{")]
        own?.forEachMember { member in
            if member.isNamed("history") || member.isNamed("replayed") { return }
            Self.append(member, to: &out)
        }
        if isReplay { out += "\"replayed\":true,".utf8 }
        out += "\"history\":\"\(id.text)\"}".utf8
        return out
    }

    /// A `broadcast` event's payload with the object in it. The sender's text stays as it is but for a `meta` of its own:
    /// a key that occurs twice is read in more than one way.
    func spliced(into payload: [UInt8]) -> [UInt8] {
        let object = JSON(trusted: payload[...])
        var out: [UInt8] = []
        out.reserveCapacity(payload.count + 64)
        if let own = object["meta"] {
            out.append(UInt8(ascii: "{"))
            object.forEachMember { member in
                if !member.isNamed("meta") { Self.append(member, to: &out) }
            }
            out += "\"meta\":".utf8
            out += joined(with: own)
        } else {
            out += object.bytes.dropLast()
            out += (object.isEmptyObject ? "\"meta\":" : ",\"meta\":").utf8
            out += joined(with: nil)
        }
        out.append(UInt8(ascii: "}"))
        return out
    }

    private static func append(_ member: JSON.Member, to out: inout [UInt8]) {
        out.append(UInt8(ascii: "\""))
        out += member.rawKey
        out += "\":".utf8
        out += member.value.bytes
        out.append(UInt8(ascii: ","))
    }
}

extension JSON {
    fileprivate var isEmptyObject: Bool {
        var isEmpty = true
        forEachMember { _ in isEmpty = false }
        return isEmpty
    }
}

extension Broadcast {
    /// The message as members with history get it. Where a binary frame has no room for the id, it goes without one: who
    /// comes back with an older id gets it twice.
    func frame(_ version: ProtocolVersion, with meta: HistoryMeta, in channel: Channel) -> Frame? {
        let frames = channel.frames(version)
        switch self {
        case .text(let payload): return frames.push("broadcast", payload: meta.spliced(into: payload))
        case .user(let user):
            let own = user.metadata.map { JSON(trusted: $0[...]) }
            let marked = UserBroadcast(
                event: user.event, encoding: user.encoding, payload: user.payload, metadata: meta.joined(with: own))
            if version == .v2, let frame = ServerFrame.userBroadcast(marked, topic: channel.key.topic) { return frame }
            if let payload = marked.textPayload() { return frames.push("broadcast", payload: payload) }
            return frame(version, in: channel)
        }
    }
}
