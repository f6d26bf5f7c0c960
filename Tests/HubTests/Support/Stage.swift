import Hub
import Matching
import Streams
import TestSupport
import Testing
import Wire

/// A hub on a clock that is moved by hand, and what it did in words (a fan-out that reaches nobody is left out):
///
///     1 ← ["1","1","realtime:a","phx_reply",…]      a text frame to slot 1
///     1,2 ⇐ [null,null,"realtime:a","broadcast",…]  one frame for several
///     3 ⇐ #4 realtime:a cursor json {"x":1}         a binary frame of kind 4
///     relay broadcast realtime:a
///     subscribe 0.5 anon [12]
///     recover 0.5 mark(3)                           what a member missed is to be read
///     authorize anon read a                         the policies are asked about a channel
///
/// Who is admitted to a group is left out, too; `admissions` has it.
final class Stage {
    /// Second 1,000 of the year 1970.
    static let start = HubTime(monotonic: 0, unix: 1_000_000)

    let hub: Hub
    var now = Stage.start
    /// Where the actions of the last call are kept as they were, for another hub or for closer looks.
    private(set) var actions: [Action] = []

    init(hub: Hub) {
        self.hub = hub
    }

    /// Nobody is brought what it missed unless there is a registry for it.
    init(
        loop: Int = 0, limits: HubLimits = HubLimits(), sessions: SessionRegistry = SessionRegistry(window: 0),
        presence: PresenceRules = .plain, typing: TypingRules = TypingRules(),
        presences: PresenceLeases = PresenceLeases(), users: UserPresence? = nil,
        streams: (any StreamService)? = nil, history: HistoryStore? = nil, hasPeers: Bool = false
    ) {
        hub = Hub(
            loop: loop, limits: limits, verifier: TestVerifier(), random: SeededGenerator(seed: UInt64(loop) + 1),
            sessions: sessions, history: history, presence: presence, typing: typing, presences: presences,
            users: users, streams: streams, hasPeers: hasPeers)
    }

    static func claims(
        _ role: String = "anon", subject: String? = nil, session: String? = nil, expiresAt: Int = 10_000
    ) -> Claims {
        let name = session.map { #","session_id":"\#($0)""# } ?? ""
        return Claims(
            role: Name(role), subject: subject.map { Name($0) }, expiresAt: expiresAt,
            json: Array(#"{"exp":\#(expiresAt)\#(name)}"#.utf8))
    }

    func connect(
        _ slot: Slot, _ version: ProtocolVersion = .v2, role: String = "anon", subject: String? = nil,
        session: String? = nil, expiresAt: Int = 10_000, isPage: Bool = false
    ) {
        let claims = Self.claims(role, subject: subject, session: session, expiresAt: expiresAt)
        hub.connect(slot, version: version, claims: claims, isPage: isPage)
    }

    @discardableResult func disconnect(_ slot: Slot, isUnloaded: Bool = false) throws -> [String] {
        hub.disconnect(slot, at: now, isUnloaded: isUnloaded)
        return try take()
    }

    @discardableResult func say(_ text: String, from slot: Slot) throws -> [String] {
        try hub.receiveMessage(Array(text.utf8)[...], isBinary: false, from: slot, at: now)
        return try take()
    }

    @discardableResult func say(_ bytes: [UInt8], from slot: Slot) throws -> [String] {
        try hub.receiveMessage(bytes[...], isBinary: true, from: slot, at: now)
        return try take()
    }

    /// Joins in version 2 and forgets the answer; `ref` is the join's ref too.
    @discardableResult func join(_ topic: String, _ slot: Slot, ref: String = "1", _ config: String = "{}") throws
        -> [String]
    {
        try say(#"["\#(ref)","\#(ref)","\#(topic)","phx_join",{"config":\#(config)}]"#, from: slot)
    }

    @discardableResult func joinV1(_ topic: String, _ slot: Slot, ref: String = "1", _ config: String = "{}") throws
        -> [String]
    {
        try say(
            #"{"topic":"\#(topic)","event":"phx_join","payload":{"config":\#(config)},"ref":"\#(ref)","join_ref":"\#(ref)"}"#,
            from: slot)
    }

    /// Joins a private channel in version 2, and the authority lets the member read.
    @discardableResult func joinPrivate(
        _ topic: String, _ slot: Slot, ref: String = "1", _ config: String = "{}",
        reading read: ChannelExtensions = .all
    ) throws -> [String] {
        let rest = config == "{}" ? "}" : "," + config.dropFirst()
        try join(topic, slot, ref: ref, "{\"private\":true" + rest)
        return try decide(.decided(read))
    }

    /// The authority's answer to all that the last actions asked.
    @discardableResult func decide(_ outcome: AuthorizationOutcome) throws -> [String] {
        let ids = asked
        return try watch { hub in
            for id in ids { hub.receiveAuthorization(id, is: outcome) }
        }
    }

    /// The feed's answer to the recoveries that the last actions ask for: nothing was missed.
    @discardableResult func catchUp() throws -> [String] {
        let ids = recoveries
        return try watch { hub in
            for id in ids {
                hub.deliverEvent(.recovery(id, .began(.resumed)))
                hub.deliverEvent(.recovery(id, .caughtUp(cursor: "c")))
            }
        }
    }

    /// What `body` makes the hub do.
    func watch(_ body: (Hub) throws -> Void) throws -> [String] {
        try body(hub)
        return try take()
    }

    @discardableResult func tick(after milliseconds: Int64) throws -> [String] {
        now = now.advanced(by: milliseconds)
        hub.performTick(at: now)
        return try take()
    }

    /// The relays among the last actions.
    var relays: [Relay] {
        actions.compactMap { if case .relay(let relay) = $0 { relay } else { nil } }
    }

    /// The groups the last actions ask the feed for.
    var subscribed: [ChangeGroupID] {
        actions.compactMap { if case .subscribe(let id, _) = $0 { id } else { nil } }
    }

    /// `+` and `-` with the claims of those who entered or left a group as the first or last of their kind.
    var admissions: [String] {
        actions.compactMap {
            switch $0 {
            case .admit(let id, let claims): "+\(id.serial) \(String(decoding: claims.json, as: UTF8.self))"
            case .withdraw(let id, let claims): "-\(id.serial) \(String(decoding: claims.json, as: UTF8.self))"
            default: nil
            }
        }
    }

    /// The recoveries that the last actions ask the feed for.
    var recoveries: [RecoveryID] {
        actions.compactMap { if case .recover(let id, _) = $0 { id } else { nil } }
    }

    /// The questions among the last actions.
    var asked: [AuthorizationID] {
        actions.compactMap { if case .authorize(let id, _) = $0 { id } else { nil } }
    }

    private func take() throws -> [String] {
        actions = hub.actions
        hub.actions = []
        hub.offerLeases()
        return try actions.compactMap(Self.describe).filter { !$0.hasPrefix(" ⇐") }
    }

    static func describe(_ action: Action) throws -> String? {
        switch action {
        case .send(let frame, let slot, _): "\(slot) ← \(try frame.shown())"
        case .fanOut(let frame, let audience, let except, _):
            "\(audience.filter { $0 != except }.sorted().map(String.init).joined(separator: ",")) ⇐ \(try frame.shown())"
        case .close(let slot, let code, let reason): "close \(slot) \(code.rawValue) \(reason)"
        case .begin(let slot, let frame): "begin \(slot) \(try frame.shown())"
        case .refuse(let slot, let refusal): "refuse \(slot) \(refusal.reason)"
        case .relay(.broadcast(let key, _)): "relay broadcast \(key.topic)\(key.isPrivate ? " private" : "")"
        case .relay(.presence(let key, let diff)):
            "relay presence \(key.topic) +\(diff.joins.count) -\(diff.leaves.count)"
        case .relay(.typing(let key, .started)): "relay typing \(key.topic)"
        case .relay(.typing(let key, .stopped)): "relay typing stopped \(key.topic)"
        case .relay(.typing(let key, .ended)): "relay typing ended \(key.topic)"
        case .relay(.typing(let key, .forgotten)): "relay typing forgotten \(key.topic)"
        case .relay(.ordered(let key, let broadcast, _)):
            "relay ordered \(key.topic)\(broadcast.sender.map { " by \($0.member.serial)" } ?? "")"
        case .relay(.lease(let key, let notice)): "relay lease \(key.topic) \(describe(notice))"
        case .relay(.appState(let key, let member, let state)):
            "relay state \(key.topic) \(member.serial) \(state.rawValue)"
        case .relay(.keeping(let key)): "relay keeping \(key.topic)"
        case .relay(.missing): "relay missing"
        case .subscribe(let id, let subscription):
            "subscribe \(id.loop).\(id.serial) \(subscription.role)\(subscription.isLegacy ? " legacy" : "") \(subscription.ids)"
        case .unsubscribe(let id): "unsubscribe \(id.loop).\(id.serial)"
        case .admit, .withdraw: nil
        case .recover(let id, let question): "recover \(id.loop).\(question.group.serial) \(question.from)"
        case .abandon: "abandon"
        case .ping(let places):
            "ask \(places.map { "\($0.loop).\($0.slot)" }.joined(separator: ","))"
        case .authorize(_, let question): "authorize \(describe(question))"
        case .store(let id, let message):
            "store \(message.topic) \(message.event)\(message.ttl.map { " for \($0)" } ?? "")\(id == nil ? "" : " ack")"
        case .stream(_, let name, .append(let append)):
            "stream \(name.text) append \(String(decoding: append.body, as: UTF8.self))\(append.closes ? " close" : "")"
        case .stream(_, let name, .cancel): "stream \(name.text) cancel"
        case .stream(_, let name, .hold): "stream \(name.text) hold"
        case .stream(_, let name, .release): "stream \(name.text) release"
        case .stream(_, let name, _): "stream \(name.text)"
        }
    }

    private static func describe(_ notice: LeaseNotice) -> String {
        switch notice {
        case .lost(let member, let time): "lost \(member.loop).\(member.serial) for \(time)"
        case .expected(let member, let time): "expected \(member.loop).\(member.serial) for \(time)"
        case .claimed(let member, let loop): "claimed \(member.loop).\(member.serial) by \(loop)"
        case .over(let member): "over \(member.loop).\(member.serial)"
        }
    }

    private static func describe(_ question: AuthorizationQuestion) -> String {
        let asked =
            switch question.right {
            case .read(let replay): replay.map { "read since \($0.since) limit \($0.limit)" } ?? "read"
            case .write(let extensions):
                switch extensions {
                case .broadcast: "write"
                case .presence: "track"
                case .persistence: "persist"
                default: "cancel"
                }
            }
        return "\(question.claims.role) \(asked) \(question.topic)"
    }
}
