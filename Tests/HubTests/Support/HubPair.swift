import Hub
import Matching
import TestSupport
import Wire

/// Two hubs that hear each other at once, and a check of everything they say.
struct HubPair {
    struct Defect: Error { let what: String }

    let hubs: [Hub]
    var connected: [[Slot: ProtocolVersion]] = [[:], [:]]
    var groups: [[ChangeGroupID]] = [[], []]
    /// By group: who is in it, as the feed is told.
    var admitted: [[ChangeGroupID: Set<Claims>]] = [[:], [:]]
    var privacy = Privacy()
    var framesSeen = 0
    /// Copies of what was said in private channels by others than the corpus.
    var secretsHeard = 0
    var kinds: Set<String> = []
    private var now = Stage.start
    private var random = SeededGenerator(seed: 7)

    init() {
        hubs = (0...1).map {
            Hub(loop: $0, verifier: TestVerifier(), random: SeededGenerator(seed: UInt64($0)), presence: .plain)
        }
    }

    mutating func connect(_ side: Int, _ slot: Slot, _ version: ProtocolVersion) throws {
        connected[side][slot] = version
        hubs[side].connect(slot, version: version, claims: Stage.claims(expiresAt: Int(now.unix / 1000) + 3))
        try settle(side)
    }

    mutating func disconnect(_ side: Int, _ slot: Slot) throws {
        connected[side][slot] = nil
        hubs[side].disconnect(slot)
        privacy.end { $0.side == side && $0.slot == slot }
        try settle(side)
    }

    mutating func tick(_ side: Int, by milliseconds: Int64) throws {
        // The tokens of the corpus count from the year 1970, so time starts again before they are over.
        now = now.unix > 4_000_000 ? Stage.start : now.advanced(by: milliseconds)
        hubs[side].performTick(at: now)
        try settle(side)
    }

    mutating func feed(_ side: Int, isReady: Bool) throws {
        hubs[side].feedChanged(isReady: isReady)
        try settle(side)
    }

    mutating func answer(_ side: Int, _ number: UInt64) throws {
        guard !groups[side].isEmpty else { return }
        let group = groups[side][Int(number % UInt64(groups[side].count))]
        hubs[side].changeSubscription(group, is: [.live, .live, .failed("no"), .unavailable][Int(number >> 32 & 3)])
        try settle(side)
    }

    mutating func deliver(_ side: Int, _ number: UInt64) throws {
        guard !groups[side].isEmpty else { return }
        let group = groups[side][Int(number % UInt64(groups[side].count))]
        let some = (admitted[side][group] ?? []).filter { _ in number >> 16 & 1 == 0 }
        hubs[side].deliverEvent(
            .change(
                ChangeDelivery(
                    group: group, operation: .insert, ids: [1, 2], data: Array("{}".utf8),
                    recipients: number >> 17 & 1 == 0 ? .everybody : .bearers(Array(some)))))
        try settle(side)
    }

    mutating func receive(_ side: Int, _ slot: Slot, _ bytes: [UInt8], _ isBinary: Bool) throws {
        privacy.began(side, slot, isJoin: String(decoding: bytes, as: UTF8.self).contains("phx_join"))
        defer { privacy.actor = nil }
        do { try hubs[side].receiveMessage(bytes[...], isBinary: isBinary, from: slot, at: now) } catch {
            guard hubs[side].actions.isEmpty else { throw Defect(what: "a malformed frame had an effect") }
        }
        do { try settle(side) } catch {
            throw Defect(what: "\(error) after \(String(decoding: bytes, as: UTF8.self))")
        }
    }

    /// Checks what a hub wants done, and passes its relays on.
    private mutating func settle(_ side: Int) throws {
        let actions = hubs[side].actions
        hubs[side].actions = []
        var relays: [Relay] = []
        for action in actions {
            switch action {
            case .send(let frame, let slot, _): try check(frame, side, [slot])
            case .fanOut(let frame, let audience, _, _):
                guard Set(audience).count == audience.count else { throw Defect(what: "twice to one: \(audience)") }
                try check(frame, side, audience)
            // What a client sends that was told to come back may still be read.
            case .close(_, .serviceRestart, _): break
            case .close: throw Defect(what: "closed")
            case .relay(let relay): relays.append(relay)
            case .recover(let id, _):
                hubs[side].deliverEvent(.recovery(id, .began(.resumed)))
                hubs[side].deliverEvent(.recovery(id, .caughtUp(cursor: "c")))
                try settle(side)
            case .abandon, .ping, .stream, .store, .begin, .refuse: break
            case .subscribe(let id, _): groups[side].append(id)
            case .unsubscribe(let id):
                guard let index = groups[side].firstIndex(of: id) else { throw Defect(what: "unsubscribed twice") }
                groups[side].remove(at: index)
                guard admitted[side][id]?.isEmpty ?? true else {
                    throw Defect(what: "a group ended with somebody in it")
                }
            case .admit(let id, let claims):
                guard groups[side].contains(id), admitted[side][id, default: []].insert(claims).inserted else {
                    throw Defect(what: "admitted twice, or to no group")
                }
            case .withdraw(let id, let claims):
                guard admitted[side][id]?.remove(claims) != nil else {
                    throw Defect(what: "withdrawn without being in")
                }
            case .authorize(let id, let question): privacy.asked(side, id, question)
            }
        }
        for relay in relays {
            let other = 1 - side
            hubs[other].applyRelay(relay)
            let answers = hubs[other].actions
            hubs[other].actions = []
            for answer in answers {
                guard case .fanOut(let frame, let audience, nil, _) = answer else {
                    throw Defect(what: "a relay made \(answer)")
                }
                try check(frame, other, audience)
            }
        }
    }

    /// The authority answers any of the open questions, or one that it has answered.
    mutating func authorize(_ side: Int, _ number: UInt64) throws {
        if number & 7 == 0, let id = privacy.answered.randomElement(using: &random), id.loop == side {
            hubs[side].receiveAuthorization(id, is: .decided(.all))
            guard hubs[side].actions.isEmpty else { throw Defect(what: "an answer counted twice") }
        }
        let open = privacy.open.keys.filter { $0.loop == side }.sorted { $0.serial < $1.serial }
        guard !open.isEmpty else { return }
        let id = open[Int(number >> 8 % UInt64(open.count))]
        let secrets = [
            ReplayedMessage(id: "1", event: "e", body: .json(Array(Self.secret.utf8))),
            ReplayedMessage(id: "2", event: "e", body: .binary(Array(Self.secret.utf8))),
        ]
        let outcome: AuthorizationOutcome =
            switch number >> 3 & 7 {
            case 0: .unavailable
            case 1: .replayFailed
            case 2: .decided([])
            case 3: .decided(.broadcast, replay: secrets)
            case 4: .decided(.presence)
            default: .decided(.all, replay: secrets)
            }
        privacy.answer(id, outcome)
        hubs[side].receiveAuthorization(id, is: outcome)
        try settle(side)
    }

    private static let secret = #"{"s3cret":1}"#

    /// Something is said in the private channel of this topic, by SQL, by HTTP or by another loop.
    mutating func whisper(_ side: Int, _ topic: String, _ number: UInt64) throws {
        let key = ChannelKey(topic: topic, isPrivate: true)
        let payload = Array(Self.secret.utf8)
        let user = UserBroadcast(
            event: "e", encoding: number & 1 == 0 ? .json : .raw, payload: payload[...], metadata: nil)
        switch number >> 1 & 3 {
        case 0: hubs[side].publishMessage(.text(payload), to: key)
        case 1: hubs[side].applyRelay(.broadcast(key, .user(user)))
        case 2:
            let id = String(number >> 8 & 3)
            hubs[side].deliverEvent(.broadcast(DatabaseBroadcast(key: key, id: id, broadcast: .user(user))))
        default:
            // Somebody of a third loop comes and goes.
            let stage = Stage(loop: 9)
            stage.connect(1)
            try stage.join("realtime:a", 1)
            for event in [#"{"event":"track","payload":\#(Self.secret)}"#, #"{"event":"untrack"}"#] {
                try stage.say(#"["1","2","realtime:a","presence",\#(event)]"#, from: 1)
                for case .presence(_, let diff) in stage.relays { hubs[side].applyRelay(.presence(key, diff)) }
            }
        }
        try settle(side)
    }

    private mutating func checkSecrecy(
        _ frame: ShownFrame, _ topic: String, _ part: ChannelExtensions, _ side: Int, _ audience: [Slot]
    ) throws {
        guard String(decoding: frame.payload, as: UTF8.self).contains("s3cret") else { return }
        for slot in audience {
            guard privacy.mayHear(Privacy.Place(side: side, slot: slot, topic: topic), part) else {
                throw Defect(what: "a secret for \(slot), who was not granted it")
            }
            secretsHeard += 1
        }
    }

    private mutating func check(_ frame: Frame, _ side: Int, _ audience: [Slot]) throws {
        framesSeen += 1
        if frame.isPing { return }
        let versions = Set(audience.map { connected[side][$0] })
        guard versions.count == 1, let version = versions.first ?? nil else {
            throw Defect(what: "to nobody or to mixed: \(audience)")
        }
        let shown = try ShownFrame(frame.bytes)
        guard shown.isText else {
            guard version == .v2 else { throw Defect(what: "binary in version 1") }
            kinds.insert("binary")
            return try checkSecrecy(shown, try shown.kind4().topic, .broadcast, side, audience)
        }
        let json = try JSON(parsing: shown.payload)
        let parts = version == .v2 ? json.elements : ["ref", "topic", "event", "payload"].compactMap { json[$0] }
        guard parts.count == (version == .v2 ? 5 : 4) else { throw Defect(what: "shape: \(json)") }
        if version == .v1 {
            var count = 0
            json.forEachMember { _ in count += 1 }
            guard count == 4 else { throw Defect(what: "keys: \(json)") }
        }
        let (payload, event) = (parts[parts.count - 1], parts[parts.count - 2].string ?? "")
        guard payload.kind == .object || event == "broadcast", parts[parts.count - 3].kind == .string else {
            throw Defect(what: "types: \(json)")
        }
        kinds.insert(event)
        let topic = parts[parts.count - 3].string ?? ""
        try checkSecrecy(shown, topic, event == "broadcast" ? .broadcast : .presence, side, audience)
        for slot in audience { privacy.told(Privacy.Place(side: side, slot: slot, topic: topic), event, payload) }
        switch event {
        case "phx_reply":
            guard let response = payload["response"], response.kind == .object else { throw Defect(what: "\(json)") }
            for entry in response["postgres_changes"]?.elements ?? [] {
                guard entry["id"]?.int ?? 0 > 0 else { throw Defect(what: "id: \(json)") }
            }
        case "system":
            for key in ["extension", "status", "message", "channel"] where payload[key]?.kind != .string {
                throw Defect(what: "system without \(key): \(json)")
            }
        case "presence_diff":
            guard payload["joins"]?.kind == .object, payload["leaves"]?.kind == .object else {
                throw Defect(what: "\(json)")
            }
        case "phx_close", "phx_error":
            guard version == .v1 || parts[0].bytes == parts[1].bytes else { throw Defect(what: "\(json)") }
        case "postgres_changes":
            guard payload["ids"]?.kind == .array, payload["data"]?.kind == .object else {
                throw Defect(what: "\(json)")
            }
        default: break
        }
    }
}
