import Hub
import TestSupport
import Testing
import Wire

/// Two hubs wired together by relays that take their time, against a model that is a plain list of who is where:
/// who receives a broadcast, and what every client thinks of who is present.
@Suite struct HubModelTests {
    @Test(arguments: 0..<12) func agreesWithAPlainList(_ seed: Int) throws {
        var world = World(seed: UInt64(seed))
        for _ in 0..<2_000 { try world.step() }
        try world.end()
        #expect(world.broadcastsChecked > 200)
        #expect(world.viewsChecked > 200)
    }
}

private struct World {
    struct Place: Hashable { let side: Int; let slot: Slot }
    struct Room: Hashable { let topic: String; let isPrivate: Bool }
    struct Shown: Hashable { let key: String; let payload: String }

    /// A member as the model sees it.
    struct Member {
        var room: Room
        var echoes = false
        /// Waits for the feed: nothing reaches it yet.
        var group: ChangeGroupID?
        var key: String
        /// What it tracks.
        var payload: String?
        /// What it tracked last while its join was not answered, and whether it did.
        var heldPayload: String?
        var holdsPayload = false

        mutating func track(_ new: String?) {
            if group == nil { payload = new } else { (heldPayload, holdsPayload) = (new, true) }
        }

        mutating func isAnswered() {
            group = nil
            if holdsPayload { payload = heldPayload }
            holdsPayload = false
        }
        /// What its client thinks of who is present, by `phx_ref`; nil until it has a presence_state.
        var view: [String: Shown]?
    }

    private let hubs: [Hub]
    private var random: SeededGenerator
    private var versions: [Place: ProtocolVersion] = [:]
    private var members: [Place: [String: Member]] = [:]
    /// What each hub was told and has not heard yet.
    private var inbox: [[Relay]] = [[], []]
    private var pending: [(Int, ChangeGroupID)] = []
    /// Joins of private channels that the authority has not answered.
    private var asked: [(Int, AuthorizationID)] = []
    private(set) var joinsDecided = 0
    private var count = 0
    private let now = Stage.start
    private(set) var broadcastsChecked = 0
    private(set) var viewsChecked = 0

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
        hubs = (0...1).map {
            Hub(loop: $0, verifier: TestVerifier(), random: SeededGenerator(seed: seed &+ UInt64($0)), presence: .plain)
        }
    }

    private mutating func below(_ bound: Int) -> Int { Int(random.next() % UInt64(bound)) }
    private mutating func pick<T>(_ choices: [T]) -> T { choices[below(choices.count)] }

    // MARK: Steps

    mutating func step() throws {
        let place = Place(side: below(2), slot: Slot(below(5)))
        guard let version = versions[place] else {
            versions[place] = below(3) == 0 ? .v1 : .v2
            hubs[place.side].connect(place.slot, version: versions[place] ?? .v2, claims: Stage.claims("service_role"))
            return
        }
        let topic = pick(["realtime:a", "realtime:b"])
        let member = members[place]?[topic]
        switch below(12) {
        case 0 where below(3) == 0:
            hubs[place.side].disconnect(place.slot)
            versions[place] = nil
            members[place] = nil
            try settle(place.side)
        case 1...3: try join(place, version, topic)
        case 4:
            members[place]?[topic] = nil
            try say(place, version, topic, "phx_leave", "{}")
        case 5...7: try broadcast(place, version, topic, member)
        case 8, 9:
            guard member != nil, !isHeld(member) else { return }
            let payload = "{\"n\":\(below(3))}"
            members[place]?[topic]?.track(payload)
            try say(place, version, topic, "presence", #"{"event":"track","payload":\#(payload)}"#)
        case 10:
            guard member != nil, !isHeld(member) else { return }
            members[place]?[topic]?.track(nil)
            try say(place, version, topic, "presence", #"{"event":"untrack"}"#)
        default:
            if !pending.isEmpty { try answer() }
            if !asked.isEmpty { try authorize() }
        }
        // Relays are slow: sometimes they pile up.
        if below(3) > 0 {
            try hear(0)
            try hear(1)
            try checkViews()
        }
    }

    private mutating func join(_ place: Place, _ version: ProtocolVersion, _ topic: String) throws {
        let isPrivate = below(4) == 0
        let (echoes, watches, wantsChanges) = (below(2) == 0, below(3) > 0, below(4) == 0)
        let key = pick(["k", "l", "é"])
        members[place, default: [:]][topic] = Member(
            room: Room(topic: topic, isPrivate: isPrivate), echoes: echoes, key: key)
        let changes = wantsChanges ? "[{\"schema\":\"public\",\"table\":\"t\(below(2))\"}]" : "[]"
        let config =
            #"{"config":{"private":\#(isPrivate),"broadcast":{"self":\#(echoes)},"presence":{"enabled":\#(watches),"key":"\#(key)"},"postgres_changes":\#(changes)}}"#
        let reply = try say(place, version, topic, "phx_join", config)
        if !reply { members[place]?[topic]?.group = ChangeGroupID(loop: -1, serial: 0) }
    }

    /// The feed answers one of the groups that wait.
    private mutating func answer() throws {
        let (side, group) = pending.remove(at: below(pending.count))
        let outcome: ChangeSubscriptionOutcome = pick([.live, .live, .failed("no"), .unavailable])
        hubs[side].changeSubscription(group, is: outcome)
        try settle(side)
    }

    /// The authority answers one of the joins that wait for it.
    private mutating func authorize() throws {
        let (side, id) = asked.remove(at: below(asked.count))
        let outcome: AuthorizationOutcome = pick([.decided(.all), .decided(.all), .decided([]), .unavailable])
        hubs[side].receiveAuthorization(id, is: outcome)
        joinsDecided += 1
        try settle(side)
    }

    /// What the member of a private channel writes before its join is answered waits; other tests look at that.
    private func isHeld(_ member: Member?) -> Bool { member?.group != nil && member?.room.isPrivate == true }

    private mutating func broadcast(_ place: Place, _ version: ProtocolVersion, _ topic: String, _ member: Member?)
        throws
    {
        guard !isHeld(member) else { return }
        count += 1
        let isRaw = version == .v2 && below(3) == 0
        let hub = hubs[place.side]
        if isRaw {
            let bytes = [3, 0, 0, UInt8(topic.utf8.count), 1, 0, 0] + Array("\(topic)e\(count)".utf8)
            try hub.receiveMessage(bytes[...], isBinary: true, from: place.slot, at: now)
        } else {
            try hub.receiveMessage(
                frame(version, topic, "broadcast", "{\"count\":\(count)}"), isBinary: false, from: place.slot, at: now)
        }
        var expected: Set<Slot> = []
        if let member { expected = receivers(place.side, member.room, isRaw, except: member.echoes ? nil : place) }
        let got = try settle(place.side)
        guard got == expected else {
            Issue.record("\(place) \(topic): \(got) instead of \(expected)")
            return
        }
        broadcastsChecked += 1
    }

    private func receivers(_ side: Int, _ room: Room, _ isRaw: Bool, except: Place?) -> Set<Slot> {
        var slots: Set<Slot> = []
        for (place, topics) in members where place.side == side && place != except {
            guard let member = topics[room.topic], member.room == room, member.group == nil else { continue }
            if !isRaw || versions[place] == .v2 { slots.insert(place.slot) }
        }
        return slots
    }

    // MARK: Talking

    private func frame(_ version: ProtocolVersion, _ topic: String, _ event: String, _ payload: String) -> ArraySlice<
        UInt8
    > {
        version == .v2
            ? Array("[\"1\",\"2\",\"\(topic)\",\"\(event)\",\(payload)]".utf8)[...]
            : Array(
                "{\"topic\":\"\(topic)\",\"event\":\"\(event)\",\"payload\":\(payload),\"ref\":\"2\",\"join_ref\":\"1\"}"
                    .utf8)[...]
    }

    /// Whether there was a reply.
    @discardableResult private mutating func say(
        _ place: Place, _ version: ProtocolVersion, _ topic: String, _ event: String, _ payload: String
    ) throws -> Bool {
        try hubs[place.side].receiveMessage(
            frame(version, topic, event, payload), isBinary: false, from: place.slot, at: now)
        replied = false
        try settle(place.side)
        return replied
    }

    private var replied = false

    /// Lets a hub hear what the other one said.
    private mutating func hear(_ side: Int) throws {
        let relays = inbox[side]
        inbox[side] = []
        for relay in relays {
            hubs[side].applyRelay(relay)
            let got = try settle(side)
            guard case .broadcast(let key, let message) = relay else { continue }
            let isRaw = if case .user = message { true } else { false }
            let expected = receivers(side, Room(topic: key.topic, isPrivate: key.isPrivate), isRaw, except: nil)
            if got == expected {
                broadcastsChecked += 1
            } else {
                Issue.record("relayed: \(got) instead of \(expected)")
            }
        }
    }

    /// Hands a hub's frames to the clients. Returns who received a broadcast.
    @discardableResult private mutating func settle(_ side: Int) throws -> Set<Slot> {
        let actions = hubs[side].actions
        hubs[side].actions = []
        var receivers: Set<Slot> = []
        for action in actions {
            switch action {
            case .send(let frame, let slot, _): try take(frame, Place(side: side, slot: slot), &receivers)
            case .fanOut(let frame, let audience, let except, _):
                for slot in audience where slot != except { try take(frame, Place(side: side, slot: slot), &receivers) }
            case .relay(let relay): inbox[1 - side].append(relay)
            case .subscribe(let id, _): pending.append((side, id))
            case .unsubscribe(let id): pending.removeAll { $0.1 == id }
            case .admit, .withdraw, .abandon, .ping, .stream, .store, .begin, .refuse: break
            case .recover(let id, _):
                hubs[side].deliverEvent(.recovery(id, .began(.resumed)))
                hubs[side].deliverEvent(.recovery(id, .caughtUp(cursor: "c")))
                receivers.formUnion(try settle(side))
            case .authorize(let id, let question):
                if case .write(let need) = question.right {
                    hubs[side].receiveAuthorization(id, is: .decided(need))
                    receivers.formUnion(try settle(side))
                } else {
                    asked.append((side, id))
                }
            case .close: Issue.record("closed")
            }
        }
        return receivers
    }

    /// What a client does with a frame.
    private mutating func take(_ frame: Frame, _ place: Place, _ receivers: inout Set<Slot>) throws {
        let shown = try ShownFrame(frame.bytes)
        guard shown.isText else {
            #expect(receivers.insert(place.slot).inserted, "one copy each")
            return
        }
        let json = try JSON(parsing: shown.payload)
        let isV2 = versions[place] == .v2
        let parts = isV2 ? json.elements : []
        guard let topic = (isV2 ? parts[2] : json["topic"])?.string, let payload = isV2 ? parts[4] : json["payload"]
        else { return }
        switch (isV2 ? parts[3] : json["event"])?.string {
        case "broadcast": #expect(receivers.insert(place.slot).inserted, "one copy each")
        case "phx_reply":
            let reason = payload["response"]?["reason"]?.string ?? ""
            // What was tracked behind a join that another one replaced.
            guard reason != "unmatched topic" else { return }
            replied = true
            if payload["response"]?["postgres_changes"] != nil { members[place]?[topic]?.isAnswered() }
            if reason.hasPrefix("UnableToConnect") || reason.hasPrefix("Unauthorized") {
                members[place]?[topic] = nil
            }
        case "presence_state": members[place]?[topic]?.view = Self.metas(payload)
        case "presence_diff":
            guard let joins = payload["joins"], let leaves = payload["leaves"] else { return }
            for ref in Self.metas(leaves).keys { members[place]?[topic]?.view?[ref] = nil }
            for (ref, shown) in Self.metas(joins) { members[place]?[topic]?.view?[ref] = shown }
        default: break
        }
    }

    private static func metas(_ map: JSON) -> [String: Shown] {
        var metas: [String: Shown] = [:]
        map.forEachMember { member in
            for meta in member.value["metas"]?.elements ?? [] {
                metas[meta["phx_ref"]?.string ?? "?"] = Shown(
                    key: member.key, payload: "{\"n\":\(meta["n"]?.int ?? -1)}")
            }
        }
        return metas
    }

    // MARK: Checks

    /// When all is heard, every client sees the same: what the members say.
    private mutating func checkViews() throws {
        guard inbox[0].isEmpty, inbox[1].isEmpty else { return }
        var present: [Room: [Shown]] = [:]
        for topics in members.values {
            for member in topics.values {
                if let payload = member.payload {
                    present[member.room, default: []].append(Shown(key: member.key, payload: payload))
                }
            }
        }
        func sorted(_ list: [Shown]) -> [Shown] { list.sorted { ($0.key, $0.payload) < ($1.key, $1.payload) } }
        for (place, topics) in members {
            for member in topics.values {
                guard let view = member.view else { continue }
                viewsChecked += 1
                if sorted(Array(view.values)) != sorted(present[member.room] ?? []) {
                    Issue.record("\(place) \(member.room): sees \(view), there is \(present[member.room] ?? [])")
                }
            }
        }
    }

    mutating func end() throws {
        for place in versions.keys {
            hubs[place.side].disconnect(place.slot)
            members[place] = nil
            try settle(place.side)
        }
        try hear(0)
        try hear(1)
        for hub in hubs {
            #expect(hub.channelCount == 0)
            #expect(hub.connectionCount == 0)
        }
        #expect(pending.isEmpty, "every group that waited was given up")
        #expect(joinsDecided > 20)
    }
}
