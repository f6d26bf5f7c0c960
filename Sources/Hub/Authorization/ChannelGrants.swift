package import Wire

/// What one member of a private channel may do there, as far as it is known, and what waits until it is.
///
/// Read rights are asked at the join and again for each new token. Write rights are asked at the first write, and hold as
/// long as the token.
package final class ChannelGrants {
    /// Nil until the join is decided.
    package var read: ChannelExtensions?
    /// The question about reading that is under way, of the join or of a new token.
    var readQuestion: AuthorizationID?
    /// What a new token says, until it is decided what it may read. The member keeps what it has, and its old token's
    /// end.
    var newClaims: Claims?
    /// The policies could not be asked about the new token; they are asked again.
    var isUndecided = false
    var write = WriteRights()
    /// Why writes are denied for which a policy met an error, by what they need.
    var faults: [ChannelExtensions: PolicyFault] = [:]
    var held = HeldWrites()
    /// The member asked for presence when it joined.
    let wantsPresence: Bool
    /// From the join's question to its reply.
    var replay: PendingReplay?
    /// What was replayed, and so must not come again.
    var replayed: [String] = []

    init(_ config: JoinConfig) {
        wantsPresence = config.wantsPresence
        replay = config.replay.flatMap { ReplayRequest($0) }.map { PendingReplay(request: $0) }
    }

    /// Everybody may withdraw what they said themselves.
    func right(to write: MemberWrite) -> WriteRights.State {
        let right = write.need.map { self.write[$0] } ?? .allowed
        guard case .persisted = write, right == .allowed else { return right }
        // What may be sent is sent, also where it may not be kept.
        let persistence = self.write[.persistence]
        return persistence == .denied ? .allowed : persistence
    }

    /// What is to be asked before a write whose right is unknown.
    func openNeed(of write: MemberWrite) -> ChannelExtensions? {
        guard case .persisted = write, self.write[.broadcast] == .allowed else { return write.need }
        return .persistence
    }

    /// Why a write is refused.
    func denial(of write: MemberWrite, topic: Substring) -> Refusal {
        write.need.flatMap { faults[$0] }.map { .channelPolicyFailed($0) } ?? write.denial(topic: topic)
    }

    var mayPersist: Bool { write[.persistence] == .allowed }
}

extension Membership {
    /// Everybody reads all of a public channel.
    package func mayRead(_ part: ChannelExtensions) -> Bool {
        guard let grants else { return true }
        return grants.read?.contains(part) ?? false
    }
}

/// The right to write, for each extension.
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

    /// What may be needed.
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

/// What a member wants the others of its channel to hear or see.
package enum MemberWrite {
    case broadcast(BroadcastMessage)
    /// The same, to be kept as a row of `realtime.messages`, too.
    case persisted(UserBroadcast, PersistRequest)
    /// The payload, a JSON object.
    case track([UInt8])
    case untrack
    case stream(StreamWrite)

    /// Whoever may write a stream may also cancel it.
    static let cancelling: ChannelExtensions = [.broadcast, .cancel]

    /// The right it takes, or rights of which one is enough; none to withdraw oneself.
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

    /// Why it is refused to who has not that right.
    func denial(topic: Substring) -> Refusal {
        need == .presence ? .trackUnauthorized(topic: String(topic)) : .writeUnauthorized(topic: String(topic))
    }

    /// The same without the frame it came in, which a slice would keep alive.
    var copied: MemberWrite {
        switch self {
        case .broadcast(.user(let user)): .broadcast(.user(user.copied))
        case .persisted(let user, let request): .persisted(user.copied, request)
        default: self
        }
    }

    /// Whether it cannot be performed before this is decided.
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

/// A member's writes that wait for a decision, in the order they came.
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

    /// Takes out those that need a right, or all.
    mutating func removeAll(needing need: ChannelExtensions? = nil) -> [Entry] {
        func isMeant(_ entry: Entry) -> Bool { need.map { entry.write.waits(for: $0) } ?? true }
        let gone = entries.filter(isMeant)
        entries.removeAll(where: isMeant)
        bytes = entries.reduce(0) { $0 + $1.bytes }
        return gone
    }
}
