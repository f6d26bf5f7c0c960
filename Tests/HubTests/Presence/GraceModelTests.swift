import Hub
import TestSupport
import Testing
import Wire

/// Members that join, track, change, lose their sockets, come back on another loop, change the state of their apps and
/// leave, at random and with relays that take their time: whatever a watcher was told adds up to who is present by the
/// rules, at every moment at which nothing is on its way.
@Suite struct GraceModelTests {
    @Test(arguments: 1...24) func watchersKnowWhoIsThere(seed: Int) throws {
        var world = GraceWorld(seed: UInt64(seed), members: seed % 3 == 0 ? 45 : 6)
        for _ in 0..<1500 { try world.step() }
        try world.passAllWindows()
        #expect(world.returns > (world.isSmall ? 20 : 2))
        #expect(world.ends > 5)
        // One message for each change and none for anything else: nobody who came back in time was heard of.
        if world.isSmall { #expect(world.heard.allSatisfy { $0 == world.changes }, "\(world.heard) \(world.changes)") }
    }

    @Test(arguments: 1...6) func aDrainIsHeardByNobody(seed: Int) throws {
        var world = GraceWorld(seed: UInt64(seed), members: 40)
        for _ in 0..<300 { try world.step() }
        try world.drain()
    }
}

/// Two loops, members, and watchers that only watch.
private struct GraceWorld {
    struct Defect: Error { let what: String }

    struct Member {
        let number: Int
        /// Nil: the hub makes it.
        let key: String?
        let user: String
        var loop = 0
        var slot: Slot = 0
        var isJoined = false
        var state = ReportedAppState.active
        /// What the others see of it.
        var payload: String? { didSet { if payload != oldValue { changes += 1 } } }
        var changes = 0
        /// It tracked since it joined, or need not.
        var isSettled = true
        /// When the others are told that it is gone, where it was cut off.
        var deadline: Int64?
    }

    /// What a watcher makes of what it is told: payloads by ref.
    struct Watcher {
        let loop: Int
        let slot: Slot
        var view: [String: String] = [:]
        var events = 0
    }

    private let hubs: [Hub]
    private let presences = PresenceLeases()
    private let inboxes: [Inbox]
    private var members: [Member]
    private var watchers: [Watcher] = []
    private var random: SeededGenerator
    private var now = Stage.start
    private var nextSlot: Slot = 100
    private let rules = PresenceRules()
    var returns = 0
    var ends = 0
    /// Of what others see.
    var changes = 0

    var isSmall: Bool { members.count < 32 }
    var heard: [Int] { watchers.map(\.events) }

    final class Inbox { var relays: [Relay] = [] }

    init(seed: UInt64, members count: Int) {
        random = SeededGenerator(seed: seed)
        let presences = presences
        hubs = (0...1).map {
            Hub(
                loop: $0, verifier: TestVerifier(), random: SeededGenerator(seed: seed &+ UInt64($0)),
                presences: presences
            )
        }
        inboxes = [Inbox(), Inbox()]
        for (hub, inbox) in zip(hubs, inboxes) {
            hub.hearOthers = { [unowned hub] in
                let relays = inbox.relays
                inbox.relays = []
                for relay in relays { hub.applyRelay(relay) }
            }
        }
        members = (0..<count).map { Member(number: $0, key: $0 % 3 == 1 ? nil : "k\($0)", user: "u\($0)") }
        for slot in Slot(1)...4 {
            let loop = Int(slot) % 2
            hubs[loop].connect(slot, version: .v2, claims: Stage.claims())
            watchers.append(Watcher(loop: loop, slot: slot))
        }
        for watcher in watchers.indices { say(watcher: watcher) }
    }

    private mutating func say(watcher: Int) {
        let (loop, slot) = (watchers[watcher].loop, watchers[watcher].slot)
        do {
            try receive(loop, slot, #"["1","1","realtime:a","phx_join",{"config":{"presence":{"enabled":true}}}]"#)
        } catch { Issue.record(error) }
    }

    // MARK: Steps

    mutating func step() throws {
        let index = Int.random(in: 0..<members.count, using: &random)
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<20: if !members[index].isJoined { try join(index) }
        case 20..<45: if members[index].isJoined { try track(index) }
        case 45..<48: if members[index].isJoined { try untrack(index) }
        case 48..<52: if members[index].isJoined { try leave(index) }
        case 52..<66: if members[index].isJoined { try lose(index) }
        case 66..<72: if members[index].isJoined { try tellState(index) }
        case 72..<85: try pass(Int64.random(in: 1...400, using: &random))
        case 85..<88: try pass(Int64.random(in: 400...9000, using: &random))
        case 88..<96: try deliver(Int.random(in: 0...1, using: &random), .random(in: 1...3, using: &random))
        default: try settle()
        }
    }

    private mutating func join(_ index: Int) throws {
        nextSlot += 1
        members[index].loop = Int.random(in: 0...1, using: &random)
        members[index].slot = nextSlot
        members[index].isJoined = true
        let member = members[index]
        hubs[member.loop].connect(
            member.slot, version: .v2, claims: Stage.claims(subject: member.user))
        let key = member.key.map { ",\"key\":\"\($0)\"" } ?? ""
        let wasThere = member.payload != nil
        if wasThere { returns += 1 }
        // Who has a key of its own goes on at once; of others it is believed when they say who they are.
        if member.key != nil {
            members[index].deadline = nil
        } else if let deadline = member.deadline {
            members[index].deadline = max(deadline, now.monotonic + 5000)
            members[index].isSettled = false
        }
        if !wasThere { members[index].state = .active }
        try receive(
            member.loop, member.slot,
            #"["1","1","realtime:a","phx_join",{"config":{"presence":{"enabled":false\#(key)}}}]"#)
    }

    private mutating func track(_ index: Int) throws {
        // Often the same as before, as clients do when they come back; then with its keys in another order.
        let isSame = Int.random(in: 0..<3, using: &random) > 0
        let old = members[index].payload
        let version = isSame ? old ?? "1" : String(Int.random(in: 0..<1000, using: &random))
        members[index].payload = version
        members[index].deadline = nil
        members[index].isSettled = true
        let n = members[index].number
        let payload = Bool.random(using: &random) ? #"{"n":\#(n),"v":\#(version)}"# : #"{"v":\#(version), "n":\#(n)}"#
        try receive(
            members[index].loop, members[index].slot,
            #"["1","2","realtime:a","presence",{"event":"track","payload":\#(payload)}]"#)
    }

    private mutating func untrack(_ index: Int) throws {
        // A member that has not said who it is takes nothing away but its own.
        if members[index].isSettled { members[index].payload = nil }
        try receive(
            members[index].loop, members[index].slot, #"["1","3","realtime:a","presence",{"event":"untrack"}]"#)
    }

    private mutating func leave(_ index: Int) throws {
        if members[index].isSettled { members[index].payload = nil }
        members[index].isJoined = false
        members[index].isSettled = true
        try receive(members[index].loop, members[index].slot, #"["1","4","realtime:a","phx_leave",{}]"#)
        hubs[members[index].loop].disconnect(members[index].slot, at: now)
        try collect(members[index].loop)
    }

    private mutating func lose(_ index: Int) throws {
        members[index].isJoined = false
        if members[index].payload != nil, members[index].isSettled {
            members[index].deadline = now.monotonic + rules.windows[members[index].state]
        }
        members[index].isSettled = true
        hubs[members[index].loop].disconnect(members[index].slot, at: now)
        try collect(members[index].loop)
    }

    private mutating func tellState(_ index: Int) throws {
        guard members[index].isSettled else { return }
        let state = ReportedAppState.allCases.randomElement(using: &random) ?? .active
        members[index].state = state
        let frame =
            Bool.random(using: &random)
            ? #"["1","5","realtime:a","app_state",{"type":"app_state","state":"\#(state.rawValue)"}]"#
            : #"["1","5","realtime:a","broadcast",{"type":"broadcast","event":"app_state","payload":{"state":"\#(state.rawValue)"}}]"#
        try receive(members[index].loop, members[index].slot, frame)
    }

    // MARK: Time

    /// Time goes by as the loops see it: each is woken when it asked to be.
    private mutating func pass(_ milliseconds: Int64) throws {
        let end = now.advanced(by: milliseconds)
        while now != end {
            let due = hubs.compactMap(\.nextDue).min() ?? .max
            let next = max(now.monotonic, min(due, end.monotonic, now.monotonic + 1000))
            now = now.advanced(by: max(1, next - now.monotonic))
            if now.monotonic > end.monotonic { now = end }
            for loop in hubs.indices {
                hubs[loop].wake(at: now)
                try collect(loop)
            }
        }
        endDeadlines()
    }

    private mutating func endDeadlines() {
        for index in members.indices {
            guard let deadline = members[index].deadline, deadline <= now.monotonic else { continue }
            members[index].deadline = nil
            members[index].payload = nil
            ends += 1
            members[index].isSettled = true
            // The state went with the presence that it was said of.
            members[index].state = .active
        }
    }

    mutating func passAllWindows() throws {
        try settle()
        try pass(26_000)
        try settle()
        changes = members.reduce(0) { $0 + $1.changes }
        guard presences.count == 0 else { throw Defect(what: "\(presences.count) leases are left") }
    }

    /// Everybody is cut off by the hub's own doing.
    mutating func drain() throws {
        try settle()
        presences.startDraining()
        let before = watchers.map(\.view)
        for index in members.indices where members[index].isJoined {
            hubs[members[index].loop].disconnect(members[index].slot, at: now)
            try collect(members[index].loop)
        }
        for _ in 0..<60 { try pass(1000) }
        try deliverAll()
        guard watchers.map(\.view) == before else { throw Defect(what: "somebody heard of the drain") }
    }

    // MARK: Between the loops

    private mutating func deliver(_ loop: Int, _ count: Int) throws {
        for _ in 0..<min(count, inboxes[loop].relays.count) {
            hubs[loop].applyRelay(inboxes[loop].relays.removeFirst())
            try collect(loop)
        }
    }

    private mutating func deliverAll() throws {
        while inboxes.contains(where: { !$0.relays.isEmpty }) {
            for loop in hubs.indices { try deliver(loop, .max) }
        }
    }

    /// Nothing is on its way any more, so that the watchers know all.
    private mutating func settle() throws {
        // No window ends while the last words are on their way.
        while members.contains(where: { $0.deadline.map { $0 - now.monotonic < 500 } ?? false }) { try pass(50) }
        for _ in 0..<2 {
            try deliverAll()
            try pass(120)
        }
        let expected = members.compactMap { member in member.payload.map { "\(member.number) \($0)" } }.sorted()
        for watcher in watchers {
            let seen = watcher.view.values.sorted()
            guard seen == expected else { throw Defect(what: "\(seen) instead of \(expected) at \(now.monotonic)") }
        }
    }

    // MARK: Frames

    private mutating func receive(_ loop: Int, _ slot: Slot, _ text: String) throws {
        try hubs[loop].receiveMessage(Array(text.utf8)[...], isBinary: false, from: slot, at: now)
        try collect(loop)
    }

    private mutating func collect(_ loop: Int) throws {
        let actions = hubs[loop].actions
        hubs[loop].actions = []
        for action in actions {
            switch action {
            case .relay(let relay): inboxes[1 - loop].relays.append(relay)
            case .send(let frame, let slot, _): try hear(frame, loop, [slot])
            case .fanOut(let frame, let audience, _, _): try hear(frame, loop, audience)
            default: break
            }
        }
        hubs[loop].offerLeases()
    }

    private mutating func hear(_ frame: Frame, _ loop: Int, _ audience: [Slot]) throws {
        let parts = try JSON(parsing: ShownFrame(frame.bytes).payload).elements
        guard parts.count == 5, let event = parts[3].string, event.hasPrefix("presence_") else { return }
        for index in watchers.indices where watchers[index].loop == loop && audience.contains(watchers[index].slot) {
            if event == "presence_state" {
                watchers[index].view = Self.metas(parts[4])
                continue
            }
            watchers[index].events += 1
            guard let joins = parts[4]["joins"], let leaves = parts[4]["leaves"] else { throw Defect(what: "diff") }
            for ref in Self.metas(leaves).keys {
                guard watchers[index].view.removeValue(forKey: ref) != nil else {
                    throw Defect(what: "somebody left who was not there")
                }
            }
            for (ref, payload) in Self.metas(joins) {
                guard watchers[index].view.updateValue(payload, forKey: ref) == nil else {
                    throw Defect(what: "somebody came who was there")
                }
            }
        }
    }

    private static func metas(_ json: JSON) -> [String: String] {
        var all: [String: String] = [:]
        json.forEachMember { member in
            for meta in member.value["metas"]?.elements ?? [] {
                all[meta["phx_ref"]?.string ?? ""] = "\(meta["n"] ?? .null) \(meta["v"] ?? .null)"
            }
        }
        return all
    }
}
