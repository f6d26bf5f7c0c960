import Foundation
import Hub
import Testing
import Wire

/// Damaged frames through two hubs that are wired together. Whatever comes in, what goes out is whole: well-formed frames
/// of the receiver's version, to sockets that are there, once each; and when all are gone nothing is left.
@Suite struct HubFuzzTests {
    private static let runs: Int = {
        if let text = ProcessInfo.processInfo.environment["ROOST_FUZZ_RUNS"], let count = Int(text) { return count }
        #if DEBUG
            return 20_000
        #else
            return 240_000
        #endif
    }()

    private static let topics = ["realtime:a", "realtime:b", "realtime:\\u00e9", "realtime:", "phoenix"]

    /// A frame as a client would send it, before it is damaged.
    private static func frame(_ random: inout SeededGenerator, _ version: ProtocolVersion) -> (
        bytes: [UInt8], isBinary: Bool
    ) {
        func pick<T>(_ choices: [T]) -> T { choices[Int(random.next() % UInt64(choices.count))] }
        let topic = pick(topics)
        if version == .v2, random.next() % 8 == 0 {
            let bytes = topic.utf8
            return (
                [3, 1, 1, UInt8(bytes.count), 1, 0, pick([0, 1])] + Array("12".utf8) + bytes
                    + Array(pick(["e{}", "e{\"a\":[1]}", "ex"]).utf8), true
            )
        }
        let (event, payload) = pick([
            ("heartbeat", "{}"), ("phx_leave", "{}"),
            ("broadcast", #"{"type":"broadcast","event":"x","payload":{"a":"\u00e9"}}"#),
            ("presence", #"{"event":"track","payload":{"n":\#(random.next() % 4)}}"#),
            ("presence", #"{"event":"untrack"}"#),
            ("access_token", #"{"access_token":"\#(pick(["good anon 9999", "bad", "good anon 1"]))"}"#),
            (
                "phx_join",
                "{\"config\":{\"presence\":{\"key\":\"\(pick(["", "k", "é\\\""]))\",\"enabled\":true},\"broadcast\":{\"self\":true,\"ack\":true,\"replication_ready\":true}}}"
            ),
            (
                "phx_join",
                #"{"config":{"postgres_changes":[{"event":"*","schema":"public","table":"t\#(random.next() % 3)"}]}}"#
            ),
            ("phx_join", #"{"config":{"private":true},"access_token":"good service_role 5000"}"#), ("phx_join", "{}"),
        ])
        let ref = pick(["null", "\"1\"", "\"2\"", "3"])
        return version == .v2
            ? (Array("[\(ref),\(pick(["\"7\"", "null"])),\"\(topic)\",\"\(event)\",\(payload)]".utf8), false)
            : (
                Array(
                    "{\"topic\":\"\(topic)\",\"event\":\"\(event)\",\"payload\":\(payload),\"ref\":\"7\",\"join_ref\":\(ref)}"
                        .utf8), false
            )
    }

    private static func damage(_ bytes: [UInt8], _ random: inout SeededGenerator) -> [UInt8] {
        var bytes = bytes
        for _ in 0..<(1 + random.next() % 3) {
            let at = Int(random.next() % UInt64(bytes.count + 1))
            let end = min(bytes.count, at + Int(random.next() % 6))
            switch random.next() % 6 {
            case 0 where at < bytes.count: bytes[at] ^= 1 << UInt8(random.next() % 8)
            case 1: bytes.removeSubrange(at..<end)
            case 2: bytes.insert(contentsOf: bytes[at..<end], at: at)
            case 3:
                bytes.insert(
                    contentsOf: Array(
                        ["{}", "[]", "null", "\"", "\\u0000", "1e9", "\u{E9}", "7"][Int(random.next() % 8)].utf8),
                    at: at)
            case 4: bytes.insert(UInt8(truncatingIfNeeded: random.next()), at: at)
            default: bytes.removeSubrange(at...)
            }
        }
        return bytes
    }

    @Test(arguments: [UInt64(1), 2]) func whatGoesOutIsWhole(_ seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var pair = HubPair()
        let slots = 6
        for _ in 0..<(Self.runs / 2) {
            let side = Int(random.next() % 2)
            let slot = Slot(random.next() % UInt64(slots))
            guard let version = pair.connected[side][slot] else {
                try pair.connect(side, slot, random.next() % 2 == 0 ? .v1 : .v2)
                continue
            }
            switch random.next() % 64 {
            case 0: try pair.disconnect(side, slot)
            case 1: try pair.tick(side, by: Int64(random.next() % 2000))
            case 2: try pair.feed(side, isReady: random.next() % 2 == 0)
            case 3...6: try pair.answer(side, random.next())
            case 7: try pair.deliver(side, random.next())
            default:
                let (frame, isBinary) = Self.frame(&random, version)
                let isDamaged = random.next() % 2 > 0
                try pair.receive(side, slot, isDamaged ? Self.damage(frame, &random) : frame, isBinary)
            }
        }
        #expect(pair.framesSeen > Self.runs / 8, "a run that provokes nothing proves nothing")
        #expect(
            pair.kinds.isSuperset(of: [
                "phx_reply", "phx_close", "phx_error", "system", "broadcast", "presence_state", "presence_diff",
                "postgres_changes", "binary",
            ]))
        for side in 0...1 {
            for slot in Slot(0)..<Slot(slots) where pair.connected[side][slot] != nil {
                try pair.disconnect(side, slot)
            }
        }
        for side in 0...1 {
            #expect(pair.hubs[side].channelCount == 0)
            #expect(pair.hubs[side].connectionCount == 0)
            #expect(pair.groups[side].isEmpty, "every subscribe has its unsubscribe")
        }
    }
}

/// Two hubs that hear each other at once, and a check of everything they say.
private struct HubPair {
    struct Defect: Error { let what: String }

    let hubs: [Hub]
    var connected: [[Slot: ProtocolVersion]] = [[:], [:]]
    var groups: [[ChangeGroupID]] = [[], []]
    var framesSeen = 0
    var kinds: Set<String> = []
    private var now = Stage.start

    init() {
        hubs = (0...1).map { Hub(loop: $0, verifier: TokenBook(), random: SeededGenerator(seed: UInt64($0))) }
    }

    mutating func connect(_ side: Int, _ slot: Slot, _ version: ProtocolVersion) throws {
        connected[side][slot] = version
        hubs[side].connect(slot, version: version, claims: Stage.claims(expiresAt: Int(now.unix / 1000) + 3))
        try settle(side)
    }

    mutating func disconnect(_ side: Int, _ slot: Slot) throws {
        connected[side][slot] = nil
        hubs[side].disconnect(slot)
        try settle(side)
    }

    mutating func tick(_ side: Int, by milliseconds: Int64) throws {
        // The tokens of the corpus count from the year 1970, so time starts again before they are over.
        now = now.unix > 4_000_000 ? Stage.start : now.advanced(by: milliseconds)
        hubs[side].tick(at: now)
        try settle(side)
    }

    mutating func feed(_ side: Int, isReady: Bool) throws {
        hubs[side].feed(isReady: isReady)
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
        hubs[side].deliver(ChangeDelivery(group: group, operation: .insert, ids: [1, 2], data: Array("{}".utf8)))
        try settle(side)
    }

    mutating func receive(_ side: Int, _ slot: Slot, _ bytes: [UInt8], _ isBinary: Bool) throws {
        do { try hubs[side].receive(bytes[...], isBinary: isBinary, from: slot, at: now) } catch {
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
            case .send(let frame, let slot): try check(frame, side, [slot])
            case .fanOut(let frame, let audience, _):
                guard Set(audience).count == audience.count else { throw Defect(what: "twice to one: \(audience)") }
                try check(frame, side, audience)
            case .close: throw Defect(what: "closed")
            case .relay(let relay): relays.append(relay)
            case .subscribe(let id, _): groups[side].append(id)
            case .unsubscribe(let id):
                guard let index = groups[side].firstIndex(of: id) else { throw Defect(what: "unsubscribed twice") }
                groups[side].remove(at: index)
            }
        }
        for relay in relays {
            let other = 1 - side
            hubs[other].apply(relay)
            let answers = hubs[other].actions
            hubs[other].actions = []
            for answer in answers {
                guard case .fanOut(let frame, let audience, nil) = answer else {
                    throw Defect(what: "a relay made \(answer)")
                }
                try check(frame, other, audience)
            }
        }
    }

    private mutating func check(_ frame: Frame, _ side: Int, _ audience: [Slot]) throws {
        framesSeen += 1
        let versions = Set(audience.map { connected[side][$0] })
        guard versions.count == 1, let version = versions.first ?? nil else {
            throw Defect(what: "to nobody or to mixed: \(audience)")
        }
        let shown = try ShownFrame(frame.bytes)
        guard shown.isText else {
            guard version == .v2 else { throw Defect(what: "binary in version 1") }
            _ = try shown.kind4()
            kinds.insert("binary")
            return
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
        guard payload.kind == .object, parts[parts.count - 3].kind == .string else {
            throw Defect(what: "types: \(json)")
        }
        kinds.insert(event)
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
