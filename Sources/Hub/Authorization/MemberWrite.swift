import Wire

/// What a member wants the others of its channel to hear or see.
enum MemberWrite {
    case broadcast(Broadcast)
    /// The payload, a JSON object.
    case track([UInt8])
    case untrack

    /// The right it takes; none to withdraw oneself.
    var need: ChannelExtensions? {
        switch self {
        case .broadcast: .broadcast
        case .track: .presence
        case .untrack: nil
        }
    }

    var bytes: Int {
        switch self {
        case .broadcast(.text(let payload)), .track(let payload): payload.count
        case .broadcast(.user(let user)): user.payload.count + user.event.utf8.count
        case .untrack: 0
        }
    }

    /// The same without the frame it came in, which a slice would keep alive.
    var copied: MemberWrite {
        guard case .broadcast(.user(let user)) = self else { return self }
        return .broadcast(
            .user(
                UserBroadcast(
                    event: user.event, encoding: user.encoding, payload: Array(user.payload)[...],
                    metadata: user.metadata)))
    }
}

/// A member's writes that wait for a decision, in the order they came.
struct HeldWrites {
    struct Entry {
        let write: MemberWrite
        let ref: JSON
        var bytes: Int { write.bytes + ref.bytes.count }
    }

    private(set) var entries: [Entry] = []
    private(set) var bytes = 0

    var isEmpty: Bool { entries.isEmpty }
    var first: Entry? { entries.first }

    mutating func append(_ entry: Entry) {
        entries.append(entry)
        bytes += entry.bytes
    }

    mutating func removeFirst() {
        bytes -= entries.removeFirst().bytes
    }

    /// Takes out those that need a right, or all.
    mutating func removeAll(needing need: ChannelExtensions? = nil) -> [Entry] {
        let gone = entries.filter { need == nil || $0.write.need == need }
        entries.removeAll { need == nil || $0.write.need == need }
        bytes = entries.reduce(0) { $0 + $1.bytes }
        return gone
    }
}
