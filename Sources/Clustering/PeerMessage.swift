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
            out.appendHeader(Kind.broadcast.rawValue, key)
            out.appendBody(body)
        case .ordered(let key, let body, let sender, let databaseID):
            out.appendHeader(Kind.ordered.rawValue, key)
            out.appendBody(body)
            out.appendOptional(databaseID?.utf8)
            out.appendByte(sender == nil ? 0 : 1)
            if let sender { out.appendMember(sender) }
        case .keep(let key, let wish):
            out.appendHeader(Kind.keep.rawValue, key)
            out.appendNumber(wish?.limit ?? 0)
            out.appendNumber(Int(wish?.lifetime ?? 0))
        case .presence(let key, let joins, let leaves):
            out.appendHeader(Kind.presence.rawValue, key)
            out.appendNumber(joins.count)
            for member in joins { out.appendPresentMember(member) }
            out.appendNumber(leaves.count)
            for gone in leaves {
                out.appendMember(gone.member)
                out.appendName(gone.ref)
            }
        case .typing(let key, let word):
            out.appendHeader(Kind.typing.rawValue, key)
            switch word {
            case .started(let typist, let body): out.appendTyping(TypingKind.started.rawValue, typist, body)
            case .stopped(let typist, let body): out.appendTyping(TypingKind.stopped.rawValue, typist, body)
            case .ended(let typist): out.appendTyping(TypingKind.ended.rawValue, typist)
            case .forgotten(let typist): out.appendTyping(TypingKind.forgotten.rawValue, typist)
            }
        case .lost(let key, let member, let milliseconds):
            out.appendHeader(Kind.lost.rawValue, key)
            out.appendMember(member)
            out.appendNumber(milliseconds)
        case .expected(let key, let member, let milliseconds):
            out.appendHeader(Kind.expected.rawValue, key)
            out.appendMember(member)
            out.appendNumber(milliseconds)
        case .claimed(let key, let member, let owner):
            out.appendHeader(Kind.claimed.rawValue, key)
            out.appendMember(member)
            out.appendOwner(owner)
        case .over(let key, let member, let owner):
            out.appendHeader(Kind.over.rawValue, key)
            out.appendMember(member)
            out.appendOwner(owner)
        case .appState(let key, let member, let state):
            out.appendHeader(Kind.appState.rawValue, key)
            out.appendMember(member)
            out.appendText(state.rawValue)
        case .users(let counts):
            out.appendByte(Kind.users.rawValue)
            out.appendUsers(counts.map { ($0.user, $0.count) })
        }
        return out.bytes
    }

    /// Nil for an unknown kind.
    init?(_ bytes: ArraySlice<UInt8>) throws(RelayReader.Malformed) {
        var fields = RelayReader(bytes)
        guard let kind = Kind(rawValue: try fields.readByte()) else { return nil }
        guard kind != .users else {
            self = .users(try fields.readUsers().map { UserCount(user: $0.user, count: $0.count) })
            return
        }
        let key = try fields.readChannel()
        switch kind {
        case .users: return nil
        case .broadcast:
            guard let body = try fields.readBody() else { return nil }
            self = .broadcast(key, body)
        case .ordered:
            guard let body = try fields.readBody() else { return nil }
            let databaseID = try fields.readOptionalText()
            let sender = try fields.readByte() == 0 ? nil : try fields.readMember()
            self = .ordered(key, body, sender: sender, databaseID: databaseID)
        case .keep:
            let (limit, lifetime) = (try fields.readCount(), try fields.readCount())
            self = .keep(key, limit == 0 ? nil : HistoryWish(limit: limit, lifetime: Int64(lifetime)))
        case .presence:
            var joins: [PresentMember] = []
            for _ in 0..<(try fields.readCount()) { joins.append(try fields.readPresentMember()) }
            var leaves: [GonePresence] = []
            for _ in 0..<(try fields.readCount()) {
                leaves.append(GonePresence(member: try fields.readMember(), ref: try fields.readName()))
            }
            self = .presence(key, joins: joins, leaves: leaves)
        case .typing:
            guard let word = TypingKind(rawValue: try fields.readByte()) else { return nil }
            guard let typist = try fields.readTypist() else { return nil }
            switch word {
            case .started, .stopped:
                guard let body = try fields.readBody() else { return nil }
                self = .typing(key, word == .started ? .started(typist, body) : .stopped(typist, body))
            case .ended: self = .typing(key, .ended(typist))
            case .forgotten: self = .typing(key, .forgotten(typist))
            }
        case .lost: self = .lost(key, try fields.readMember(), milliseconds: try fields.readCount())
        case .expected: self = .expected(key, try fields.readMember(), milliseconds: try fields.readCount())
        case .claimed: self = .claimed(key, try fields.readMember(), of: try fields.readOwner())
        case .over: self = .over(key, try fields.readMember(), of: try fields.readOwner())
        case .appState:
            let member = try fields.readMember()
            guard let state = ReportedAppState(rawValue: try fields.readText()) else { return nil }
            self = .appState(key, member, state)
        }
    }
}

extension RelayWriter {
    mutating func appendChannel(_ key: ChannelKey) {
        appendByte(key.isPrivate ? 1 : 0)
        appendText(key.topic)
    }

    fileprivate mutating func appendHeader(_ kind: UInt8, _ key: ChannelKey) {
        appendByte(kind)
        appendChannel(key)
    }

    mutating func appendMember(_ member: PeerMessage.MemberName) {
        appendNumber(member.boot)
        appendNumber(member.loop)
        appendNumber(member.serial)
    }

    mutating func appendOwner(_ owner: PeerMessage.MemberOwner) {
        appendNumber(owner.hub)
        appendNumber(owner.turn)
    }

    mutating func appendPresentMember(_ member: PeerMessage.PresentMember) {
        self.appendMember(member.member)
        appendName(member.ref)
        appendOptional(member.previousRef?.utf8)
        appendText(member.key)
        appendByte(member.hasMadeKey ? 1 : 0)
        appendOptional(member.user?.utf8)
        appendData(member.payload)
        appendOptional(member.appState?.rawValue.utf8)
    }

    fileprivate mutating func appendBody(_ body: PeerMessage.BroadcastBody) {
        switch body {
        case .text(let payload):
            appendByte(0)
            appendData(payload)
        case .user(let event, let isJSON, let payload, let metadata):
            appendByte(isJSON ? 1 : 2)
            appendText(event)
            appendData(payload)
            appendOptional(metadata)
        }
    }

    fileprivate mutating func appendTyping(
        _ kind: UInt8, _ typist: PeerMessage.Typist, _ signal: PeerMessage.BroadcastBody? = nil
    ) {
        appendByte(kind)
        switch typist {
        case .user(let user):
            appendByte(1)
            appendName(user)
        case .member(let member):
            appendByte(2)
            self.appendMember(member)
        case .payload(let payload):
            appendByte(3)
            appendData(payload)
        }
        if let signal { appendBody(signal) }
    }
}

extension RelayReader {
    mutating func readChannel() throws(Malformed) -> ChannelKey {
        let isPrivate = try readByte() != 0
        return ChannelKey(topic: try readText(), isPrivate: isPrivate)
    }

    mutating func readMember() throws(Malformed) -> PeerMessage.MemberName {
        let (boot, loop, serial) = (try readNumber(), try readCount(), try readCount())
        // Larger numbers are a process' own names for loops of others (`MemberNames`).
        guard loop <= MemberID.firstForeignLoop else { throw Malformed() }
        return PeerMessage.MemberName(boot: boot, loop: loop, serial: serial)
    }

    mutating func readOwner() throws(Malformed) -> PeerMessage.MemberOwner {
        PeerMessage.MemberOwner(hub: try readNumber(), turn: try readCount())
    }

    mutating func readPresentMember() throws(Malformed) -> PeerMessage.PresentMember {
        PeerMessage.PresentMember(
            member: try readMember(), ref: try readName(), previousRef: try readOptionalName(), key: try readText(),
            hasMadeKey: try readByte() != 0, user: try readOptionalName(), payload: Array(try readData()),
            appState: try readOptionalText().flatMap { ReportedAppState(rawValue: $0) })
    }

    /// Nil for an unknown form.
    fileprivate mutating func readBody() throws(Malformed) -> PeerMessage.BroadcastBody? {
        switch try readByte() {
        case 0: return .text(Array(try readData()))
        case let form where form <= 2:
            return .user(
                event: try readText(), isJSON: form == 1, payload: Array(try readData()),
                metadata: try readOptional().map { Array($0) })
        default: return nil
        }
    }

    fileprivate mutating func readTypist() throws(Malformed) -> PeerMessage.Typist? {
        switch try readByte() {
        case 1: .user(try readName())
        case 2: .member(try readMember())
        case 3: .payload(Array(try readData()))
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
