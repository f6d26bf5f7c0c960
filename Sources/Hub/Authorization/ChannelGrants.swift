package import Wire

/// One member's rights in a private channel, as far as they are known, and the writes held until they are.
///
/// Read rights are asked for at the join and again for each new token. Write rights are asked for at the first write
/// and last as long as the token.
package final class ChannelGrants {
    /// Nil until the join is decided.
    package var read: ChannelExtensions?
    /// The open question about read rights, for the join or a new token.
    var readQuestion: AuthorizationID?
    /// The claims of a new token until its read rights are decided. Meanwhile the member keeps its rights and its old
    /// token's expiry.
    var newClaims: Claims?
    /// The policies could not be asked about the new token and will be asked again.
    var isUndecided = false
    var write = WriteRights()
    /// Policy errors behind denied writes, by the right that was needed.
    var faults: [ChannelExtensions: PolicyFault] = [:]
    var held = HeldWrites()
    /// The join asked for presence.
    let wantsPresence: Bool
    /// Set from the join's question to its reply.
    var replay: PendingReplay?
    /// IDs of replayed messages, which must not be delivered a second time.
    var replayed: [String] = []

    init(_ config: JoinConfig) {
        wantsPresence = config.wantsPresence
        replay = config.replay.flatMap { ReplayRequest($0) }.map { PendingReplay(request: $0) }
    }

    /// Returns the state of the right to perform a write. Members may always withdraw their own presence.
    func right(to write: MemberWrite) -> WriteRights.State {
        let right = write.need.map { self.write[$0] } ?? .allowed
        guard case .persisted = write, right == .allowed else { return right }
        // A message that may be sent but not stored is still sent.
        let persistence = self.write[.persistence]
        return persistence == .denied ? .allowed : persistence
    }

    /// Returns the right to ask about next for a write whose right is unknown.
    func openNeed(of write: MemberWrite) -> ChannelExtensions? {
        guard case .persisted = write, self.write[.broadcast] == .allowed else { return write.need }
        return .persistence
    }

    /// Returns the refusal for a denied write.
    func denial(of write: MemberWrite, topic: Substring) -> Refusal {
        write.need.flatMap { faults[$0] }.map { .channelPolicyFailed($0) } ?? write.denial(topic: topic)
    }

    var mayPersist: Bool { write[.persistence] == .allowed }
}

extension Membership {
    /// Whether the member may read a part of the channel. In a public channel every member may read everything.
    package func mayRead(_ part: ChannelExtensions) -> Bool {
        guard let grants else { return true }
        return grants.read?.contains(part) ?? false
    }
}

/// The state of each write right.
struct WriteRights {
    enum State: Equatable {
        case unknown
        case asked(AuthorizationID)
        case allowed
        case denied
    }

    private var broadcast = State.unknown
    private var presence = State.unknown
    private var cancel = State.unknown
    private var persistence = State.unknown

    /// All rights a write may need.
    static let all: [ChannelExtensions] = [.broadcast, .presence, .persistence, MemberWrite.cancelling]

    subscript(need: ChannelExtensions) -> State {
        get {
            switch need {
            case .broadcast: broadcast
            case .presence: presence
            case .persistence: persistence
            default: cancel
            }
        }
        set {
            switch need {
            case .broadcast: broadcast = newValue
            case .presence: presence = newValue
            case .persistence: persistence = newValue
            default: cancel = newValue
            }
        }
    }

    var questions: [AuthorizationID] {
        [broadcast, presence, persistence, cancel].compactMap { if case .asked(let id) = $0 { id } else { nil } }
    }
}

/// Something that a member wants the others in its channel to hear or see.
package enum MemberWrite {
    case broadcast(BroadcastMessage)
    /// A broadcast that is also to be stored as a row of `realtime.messages`.
    case persisted(UserBroadcast, PersistRequest)
    /// The payload, a JSON object.
    case track([UInt8])
    case untrack
    case stream(StreamWrite)

    /// The rights to cancel a stream: anyone who may write a stream may also cancel it.
    static let cancelling: ChannelExtensions = [.broadcast, .cancel]

    /// The required right, or rights of which one is enough; nil for withdrawing one's own presence.
    var need: ChannelExtensions? {
        switch self {
        case .broadcast, .persisted, .stream(.append): .broadcast
        case .stream(.cancel): Self.cancelling
        case .track: .presence
        case .untrack: nil
        }
    }

    var kind: MessageKind {
        switch self {
        case .broadcast, .persisted, .stream: .broadcast
        case .track, .untrack: .presence
        }
    }

    var bytes: Int {
        switch self {
        case .broadcast(.text(let payload)), .track(let payload): payload.count
        case .broadcast(.user(let user)), .persisted(let user, _): user.payload.count + user.event.utf8.count
        case .untrack: 0
        case .stream(let write): write.bytes
        }
    }

    /// Returns the refusal for a member without the required right.
    func denial(topic: Substring) -> Refusal {
        need == .presence ? .trackUnauthorized(topic: String(topic)) : .writeUnauthorized(topic: String(topic))
    }

    /// A copy that does not keep the incoming frame alive, as a slice would.
    var copied: MemberWrite {
        switch self {
        case .broadcast(.user(let user)): .broadcast(.user(user.copied))
        case .persisted(let user, let request): .persisted(user.copied, request)
        default: self
        }
    }

    /// Whether the write cannot be performed before this right is decided.
    func waits(for need: ChannelExtensions) -> Bool {
        if case .persisted = self, need == .persistence { return true }
        return self.need == need
    }
}

extension UserBroadcast {
    fileprivate var copied: UserBroadcast {
        UserBroadcast(event: event, encoding: encoding, payload: Array(payload)[...], metadata: metadata)
    }
}

/// A member's undecided writes, in order of arrival.
package struct HeldWrites {
    package struct Entry {
        package let write: MemberWrite
        package let ref: JSON
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

    /// Removes and returns the writes that need a right, or all of them.
    mutating func removeAll(needing need: ChannelExtensions? = nil) -> [Entry] {
        func isMeant(_ entry: Entry) -> Bool { need.map { entry.write.waits(for: $0) } ?? true }
        let gone = entries.filter(isMeant)
        entries.removeAll(where: isMeant)
        bytes = entries.reduce(0) { $0 + $1.bytes }
        return gone
    }
}
