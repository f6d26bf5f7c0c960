import Hub
import Wire

/// A message from a hub to the others of its cluster, as it goes through the log: a kind and its content.
///
/// Kinds never change their meaning. New fields go after all existing ones, lists included. A hub skips a message of an unknown
/// kind or with an unknown form, and reads a longer one up to the fields it knows, so that old and new hubs may run side by side.
enum PeerMessage: Sendable, Equatable {
    case broadcast(ChannelKey, BroadcastBody)
    /// To a channel whose history some hub keeps; all hubs use the log's order. The sender is named if it does not want its message back.
    case ordered(ChannelKey, BroadcastBody, sender: MemberName?, databaseID: String?)
    /// The history that the hub's members want of a channel's broadcasts; nil once none of them do.
    case keep(ChannelKey, HistoryWish?)
    case presence(ChannelKey, joins: [PresentMember], leaves: [GonePresence])
    case typing(ChannelKey, TypingWord)
    /// See `LeaseNotice`.
    case lost(ChannelKey, MemberName, milliseconds: Int)
    case expected(ChannelKey, MemberName, milliseconds: Int)
    /// Valid only while the member belongs to that owner (`PresentMembers`).
    case claimed(ChannelKey, MemberName, of: MemberOwner)
    case over(ChannelKey, MemberName, of: MemberOwner)
    case appState(ChannelKey, MemberName, ReportedAppState)
    /// The current number of sockets of some users on the hub, if users are limited (`UserTally`).
    case users([UserCount])

    /// A member's name on all hubs: the process of the hub that it first joined, and its loop and number there.
    struct MemberName: Hashable, Sendable {
        let boot: UInt64
        let loop: Int
        let serial: Int
    }

    /// The hub process that speaks for a member, and how often the member had been claimed by then.
    struct MemberOwner: Hashable, Sendable {
        let hub: UInt64
        let turn: Int
    }

    struct UserCount: Sendable, Equatable {
        let user: Name
        let count: Int
    }

    /// A present member, with the fields that its lease would need.
    struct PresentMember: Sendable, Equatable {
        let member: MemberName
        let ref: Name
        let previousRef: Name?
        let key: String
        let hasMadeKey: Bool
        let user: Name?
        /// A JSON object; empty if the member is only counted.
        let payload: [UInt8]
        var appState: ReportedAppState?
    }

    struct GonePresence: Hashable, Sendable {
        let member: MemberName
        let ref: Name
    }

    enum BroadcastBody: Sendable, Equatable {
        case text([UInt8])
        case user(event: String, isJSON: Bool, payload: [UInt8], metadata: [UInt8]?)
    }

    /// See `TypingRelay`.
    enum TypingWord: Sendable, Equatable {
        case started(Typist, BroadcastBody)
        case stopped(Typist, BroadcastBody)
        case ended(Typist)
        case forgotten(Typist)
    }

    enum Typist: Sendable, Equatable {
        case user(Name)
        case member(MemberName)
        case payload([UInt8])
    }
}

// MARK: - Bytes

extension PeerMessage {
    private enum Kind: UInt8 {
        case broadcast = 1
        case presence, typing, lost, expected, claimed, over, appState, ordered, keep, users
    }

    private enum TypingKind: UInt8 { case started = 1, stopped, ended, forgotten }
    private enum TypistKind: UInt8 { case user = 1, member, payload }

    var encoded: [UInt8] {
        var out = RelayWriter()
        switch self {
        case .broadcast(let key, let body):
            out.begin(Kind.broadcast.rawValue, key)
            out.body(body)
        case .ordered(let key, let body, let sender, let databaseID):
            out.begin(Kind.ordered.rawValue, key)
            out.body(body)
            out.optional(databaseID?.utf8)
            out.byte(sender == nil ? 0 : 1)
            if let sender { out.member(sender) }
        case .keep(let key, let wish):
            out.begin(Kind.keep.rawValue, key)
            out.number(wish?.limit ?? 0)
            out.number(Int(wish?.lifetime ?? 0))
        case .presence(let key, let joins, let leaves):
            out.begin(Kind.presence.rawValue, key)
            out.number(joins.count)
            for member in joins { out.present(member) }
            out.number(leaves.count)
            for gone in leaves {
                out.member(gone.member)
                out.name(gone.ref)
            }
        case .typing(let key, let word):
            out.begin(Kind.typing.rawValue, key)
            switch word {
            case .started(let typist, let body): out.typing(TypingKind.started.rawValue, typist, body)
            case .stopped(let typist, let body): out.typing(TypingKind.stopped.rawValue, typist, body)
            case .ended(let typist): out.typing(TypingKind.ended.rawValue, typist)
            case .forgotten(let typist): out.typing(TypingKind.forgotten.rawValue, typist)
            }
        case .lost(let key, let member, let milliseconds):
            out.begin(Kind.lost.rawValue, key)
            out.member(member)
            out.number(milliseconds)
        case .expected(let key, let member, let milliseconds):
            out.begin(Kind.expected.rawValue, key)
            out.member(member)
            out.number(milliseconds)
        case .claimed(let key, let member, let owner):
            out.begin(Kind.claimed.rawValue, key)
            out.member(member)
            out.owner(owner)
        case .over(let key, let member, let owner):
            out.begin(Kind.over.rawValue, key)
            out.member(member)
            out.owner(owner)
        case .appState(let key, let member, let state):
            out.begin(Kind.appState.rawValue, key)
            out.member(member)
            out.text(state.rawValue)
        case .users(let counts):
            out.byte(Kind.users.rawValue)
            out.users(counts.map { ($0.user, $0.count) })
        }
        return out.bytes
    }

    /// Nil for an unknown kind.
    init?(_ bytes: ArraySlice<UInt8>) throws(RelayReader.Malformed) {
        var fields = RelayReader(bytes)
        guard let kind = Kind(rawValue: try fields.byte()) else { return nil }
        guard kind != .users else {
            self = .users(try fields.users().map { UserCount(user: $0.user, count: $0.count) })
            return
        }
        let key = try fields.channel()
        switch kind {
        case .users: return nil
        case .broadcast:
            guard let body = try fields.body() else { return nil }
            self = .broadcast(key, body)
        case .ordered:
            guard let body = try fields.body() else { return nil }
            let databaseID = try fields.optionalText()
            let sender = try fields.byte() == 0 ? nil : try fields.member()
            self = .ordered(key, body, sender: sender, databaseID: databaseID)
        case .keep:
            let (limit, lifetime) = (try fields.count(), try fields.count())
            self = .keep(key, limit == 0 ? nil : HistoryWish(limit: limit, lifetime: Int64(lifetime)))
        case .presence:
            var joins: [PresentMember] = []
            for _ in 0..<(try fields.count()) { joins.append(try fields.present()) }
            var leaves: [GonePresence] = []
            for _ in 0..<(try fields.count()) {
                leaves.append(GonePresence(member: try fields.member(), ref: try fields.name()))
            }
            self = .presence(key, joins: joins, leaves: leaves)
        case .typing:
            guard let word = TypingKind(rawValue: try fields.byte()) else { return nil }
            guard let typist = try fields.typist() else { return nil }
            switch word {
            case .started, .stopped:
                guard let body = try fields.body() else { return nil }
                self = .typing(key, word == .started ? .started(typist, body) : .stopped(typist, body))
            case .ended: self = .typing(key, .ended(typist))
            case .forgotten: self = .typing(key, .forgotten(typist))
            }
        case .lost: self = .lost(key, try fields.member(), milliseconds: try fields.count())
        case .expected: self = .expected(key, try fields.member(), milliseconds: try fields.count())
        case .claimed: self = .claimed(key, try fields.member(), of: try fields.owner())
        case .over: self = .over(key, try fields.member(), of: try fields.owner())
        case .appState:
            let member = try fields.member()
            guard let state = ReportedAppState(rawValue: try fields.text()) else { return nil }
            self = .appState(key, member, state)
        }
    }
}

extension RelayWriter {
    mutating func channel(_ key: ChannelKey) {
        byte(key.isPrivate ? 1 : 0)
        text(key.topic)
    }

    fileprivate mutating func begin(_ kind: UInt8, _ key: ChannelKey) {
        byte(kind)
        channel(key)
    }

    mutating func member(_ member: PeerMessage.MemberName) {
        number(member.boot)
        number(member.loop)
        number(member.serial)
    }

    mutating func owner(_ owner: PeerMessage.MemberOwner) {
        number(owner.hub)
        number(owner.turn)
    }

    mutating func present(_ member: PeerMessage.PresentMember) {
        self.member(member.member)
        name(member.ref)
        optional(member.previousRef?.utf8)
        text(member.key)
        byte(member.hasMadeKey ? 1 : 0)
        optional(member.user?.utf8)
        data(member.payload)
        optional(member.appState?.rawValue.utf8)
    }

    fileprivate mutating func body(_ body: PeerMessage.BroadcastBody) {
        switch body {
        case .text(let payload):
            byte(0)
            data(payload)
        case .user(let event, let isJSON, let payload, let metadata):
            byte(isJSON ? 1 : 2)
            text(event)
            data(payload)
            optional(metadata)
        }
    }

    fileprivate mutating func typing(
        _ kind: UInt8, _ typist: PeerMessage.Typist, _ signal: PeerMessage.BroadcastBody? = nil
    ) {
        byte(kind)
        switch typist {
        case .user(let user):
            byte(1)
            name(user)
        case .member(let member):
            byte(2)
            self.member(member)
        case .payload(let payload):
            byte(3)
            data(payload)
        }
        if let signal { body(signal) }
    }
}

extension RelayReader {
    mutating func channel() throws(Malformed) -> ChannelKey {
        let isPrivate = try byte() != 0
        return ChannelKey(topic: try text(), isPrivate: isPrivate)
    }

    mutating func member() throws(Malformed) -> PeerMessage.MemberName {
        let (boot, loop, serial) = (try number(), try count(), try count())
        // Larger numbers are a process' own names for loops of others (`MemberNames`).
        guard loop <= MemberID.firstForeignLoop else { throw Malformed() }
        return PeerMessage.MemberName(boot: boot, loop: loop, serial: serial)
    }

    mutating func owner() throws(Malformed) -> PeerMessage.MemberOwner {
        PeerMessage.MemberOwner(hub: try number(), turn: try count())
    }

    mutating func present() throws(Malformed) -> PeerMessage.PresentMember {
        PeerMessage.PresentMember(
            member: try member(), ref: try name(), previousRef: try optionalName(), key: try text(),
            hasMadeKey: try byte() != 0, user: try optionalName(), payload: Array(try data()),
            appState: try optionalText().flatMap { ReportedAppState(rawValue: $0) })
    }

    /// Nil for an unknown form.
    fileprivate mutating func body() throws(Malformed) -> PeerMessage.BroadcastBody? {
        switch try byte() {
        case 0: return .text(Array(try data()))
        case let form where form <= 2:
            return .user(
                event: try text(), isJSON: form == 1, payload: Array(try data()),
                metadata: try optional().map { Array($0) })
        default: return nil
        }
    }

    fileprivate mutating func typist() throws(Malformed) -> PeerMessage.Typist? {
        switch try byte() {
        case 1: .user(try name())
        case 2: .member(try member())
        case 3: .payload(Array(try data()))
        default: nil
        }
    }
}

// MARK: - Messages of the loops

extension PeerMessage.BroadcastBody {
    init(_ message: BroadcastMessage) {
        switch message {
        case .text(let payload): self = .text(payload)
        case .user(let user):
            self = .user(
                event: user.event, isJSON: user.encoding == .json, payload: Array(user.payload),
                metadata: user.metadata)
        }
    }

    var message: BroadcastMessage {
        switch self {
        case .text(let payload): .text(payload)
        case .user(let event, let isJSON, let payload, let metadata):
            .user(
                UserBroadcast(
                    event: event, encoding: isJSON ? .json : .raw, payload: payload[...], metadata: metadata))
        }
    }
}
