import Hub
import TestSupport
import Testing
import Wire

/// Hubs on several loops, with clients that lose their sockets at any moment, against plain lists of what was sent and
/// what every client has read.
@Suite struct HistoryModelTests {
    @Test(arguments: 0..<40) func nobodyMissesAMessage(_ seed: Int) throws {
        var world = HistoryWorld(seed: UInt64(seed), loops: 1 + seed % 3)
        for _ in 0..<1_500 { try world.step() }
        try world.end()
        #expect(world.sent > 200)
        #expect(world.losses > 40)
        #expect(world.caughtUp > 100, "a run in which nobody comes back for anything proves nothing")
    }
}

/// Loops with one history store, wired by relays and a feed that take their time, and clients on sockets that break.
struct HistoryWorld {
    private static let key = ChannelKey(topic: "realtime:a", isPrivate: false)

    private let hubs: [Hub]
    private var random: SeededGenerator
    private var now = Stage.start
    private var relays: [[Relay]]
    private var feeds: [[FeedEvent]]
    private var clients: [HistoryClient] = []
    /// Sockets that are broken and the hub has not noticed.
    private var dead: [HistoryClient.Place] = []
    private var freeSlots: [[Slot]]
    /// By socket: frames that somebody could come back for were sent, and no acknowledgement came since.
    private var unacknowledged: Set<HistoryClient.Place> = []
    /// By number: who sent it.
    private var messages: [Int?] = []
    private(set) var losses = 0

    var sent: Int { messages.count }
    var caughtUp: Int { clients.reduce(0) { $0 + $1.replayed } }

    init(seed: UInt64, loops: Int) {
        random = SeededGenerator(seed: seed &+ 77)
        var limits = HubLimits()
        limits.historyMessages = 100_000
        limits.historySeconds = 100_000
        limits.historyBytesPerReturn = .max
        let store = HistoryStore(limits: limits, window: 1_000_000)
        // It counts the moments of all loops.
        let recoveries = SessionRegistry(window: 0)
        hubs = (0..<loops).map {
            Hub(
                loop: $0, limits: limits, verifier: TestVerifier(),
                random: SeededGenerator(seed: seed &* 8 &+ UInt64($0)),
                sessions: recoveries, history: store)
        }
        relays = Array(repeating: [], count: loops)
        feeds = Array(repeating: [], count: loops)
        freeSlots = Array(repeating: Array(0..<40), count: loops)
        for number in 0..<8 {
            clients.append(
                HistoryClient(
                    number: number, version: number % 2 == 0 ? .v1 : .v2, knowsIDs: number % 4 < 2,
                    echoes: number % 3 == 0, beginsAnew: number % 5 < 2))
        }
    }

    private mutating func below(_ bound: Int) -> Int { Int(random.next() % UInt64(bound)) }

    // MARK: Steps

    mutating func step() throws {
        let number = below(clients.count)
        switch below(16) {
        case 0:
            // Sometimes it has read all that there is, and comes back before the other loops have heard of it.
            if below(2) == 0 { try read(number, .max) }
            lose(number)
            if below(2) == 0 { try connect(number) }
        case 1...2: try connect(number)
        case 3...5: try publish()
        case 6...7: try speak(number)
        case 8: tellFromSQL()
        case 9: try tick()
        case 10: bury()
        case 11: acknowledge()
        case 12...13: try hear()
        default: try read(number, below(6))
        }
    }

    /// Everybody comes back, everything arrives; then nobody may have missed anything.
    mutating func end() throws {
        for side in hubs.indices { while try hearOne(side) {} }
        for number in clients.indices {
            lose(number)
            try connect(number)
            try read(number, .max)
        }
        // Joins that wait for sockets that do not answer.
        for _ in 0..<2 {
            for side in hubs.indices { try tick(side, after: 1_100) }
            for number in clients.indices { try read(number, .max) }
        }
        for client in clients {
            let owed = (client.owedFrom ?? 0)..<messages.count
            let missed = owed.filter { client.read[$0] == nil && (client.echoes || messages[$0] != client.number) }
            #expect(missed.isEmpty, "client \(client.number) missed \(missed)")
        }
    }

    // MARK: Sockets

    private mutating func connect(_ number: Int) throws {
        guard clients[number].place == nil else { return }
        let side = below(hubs.count)
        guard let slot = freeSlots[side].popLast() else { return bury() }
        let place = HistoryClient.Place(side: side, slot: slot)
        clients[number].place = place
        clients[number].onTheWay = []
        // Of the first user there are two, and of the last.
        let user = number == 1 ? 0 : number == 7 ? 6 : number
        let claims = Stage.claims(subject: "user \(user)", session: number == 5 ? "phone" : nil, expiresAt: .max / 2)
        hubs[side].connect(slot, version: clients[number].version, claims: claims)
        try receive(clients[number].join(), from: place)
    }

    /// What was on its way is lost; the hub notices now or later.
    private mutating func lose(_ number: Int) {
        guard let place = clients[number].place else { return }
        losses += 1
        clients[number].place = nil
        clients[number].onTheWay = []
        clients[number].isJoined = false
        dead.append(place)
        if below(2) == 0 { bury() }
    }

    /// The hub notices what is broken.
    private mutating func bury() {
        for place in dead {
            hubs[place.side].disconnect(place.slot)
            settle(place.side)
            unacknowledged.remove(place)
            freeSlots[place.side].append(place.slot)
        }
        dead = []
    }

    private mutating func acknowledge() {
        for client in clients {
            guard let place = client.place else { continue }
            let hub = hubs[place.side]
            if unacknowledged.contains(place) {
                if let ping = hub.acknowledgementPing(for: place.slot) { deliver(ping, to: place) }
            } else {
                hub.nothingUnacknowledged(of: place.slot)
            }
        }
    }

    private mutating func read(_ number: Int, _ count: Int) throws {
        for _ in 0..<min(count, clients[number].onTheWay.count) {
            guard let place = clients[number].place, let ping = try clients[number].readOne() else { continue }
            hubs[place.side].receivePong(ping, from: place.slot)
            // More may have been sent since; then it stays noted with the next frame.
            if clients[number].onTheWay.isEmpty { unacknowledged.remove(place) }
        }
    }

    // MARK: Messages

    private mutating func text(by sender: Int? = nil) -> String {
        messages.append(sender)
        return #"{"n":\#(messages.count - 1),"by":\#(sender ?? -1)}"#
    }

    private mutating func speak(_ number: Int) throws {
        guard let place = clients[number].place, clients[number].isJoined else { return }
        let text = text(by: number)
        if clients[number].version == .v2, below(2) == 0 {
            let ref = clients[number].joinRef
            let head: [UInt8] = [3, UInt8(ref.utf8.count), 1, 10, 1, 0, 1]
            try receive(head + Array("\(ref)1realtime:ae\(text)".utf8), isBinary: true, from: place)
        } else {
            let payload = #"{"type":"broadcast","event":"e","payload":\#(text)}"#
            try receive(clients[number].frame("broadcast", payload), from: place)
        }
    }

    private mutating func publish() throws {
        let side = below(hubs.count)
        let payload = #"{"event":"e","payload":\#(text()),"type":"broadcast","meta":{"id":"x"}}"#
        hubs[side].publishMessage(.text(Array(payload.utf8)), to: Self.key)
        settle(side)
    }

    private mutating func tellFromSQL() {
        let payload = Array(text().utf8)
        let id = "row \(messages.count)"
        let user = UserBroadcast(
            event: "e", encoding: .json, payload: payload[...], metadata: Array(#"{"id":"\#(id)"}"#.utf8))
        let row = DatabaseBroadcast(key: Self.key, id: id, broadcast: .user(user))
        for side in hubs.indices { feeds[side].append(.broadcast(row)) }
    }

    private mutating func hear() throws {
        let side = below(hubs.count)
        for _ in 0..<below(4) { _ = try hearOne(side) }
    }

    /// A hub hears the next relay or the next of the feed.
    private mutating func hearOne(_ side: Int) throws -> Bool {
        if !relays[side].isEmpty, feeds[side].isEmpty || below(2) == 0 {
            hubs[side].applyRelay(relays[side].removeFirst())
        } else if !feeds[side].isEmpty {
            hubs[side].deliverEvent(feeds[side].removeFirst())
        } else {
            return false
        }
        settle(side)
        return true
    }

    // MARK: Hubs

    private mutating func tick() throws {
        try tick(below(hubs.count), after: Int64(below(1500)))
    }

    private mutating func tick(_ side: Int, after milliseconds: Int64) throws {
        now = now.advanced(by: milliseconds)
        hubs[side].performTick(at: now)
        settle(side)
    }

    private mutating func receive(_ bytes: [UInt8], isBinary: Bool = false, from place: HistoryClient.Place) throws {
        try hubs[place.side].receiveMessage(bytes[...], isBinary: isBinary, from: place.slot, at: now)
        settle(place.side)
    }

    private mutating func settle(_ side: Int) {
        let actions = hubs[side].actions
        hubs[side].actions = []
        for action in actions {
            switch action {
            case .send(let frame, let slot, let kind):
                deliver(frame, to: .init(side: side, slot: slot), kind)
            case .fanOut(let frame, let slots, let except, let kind):
                for slot in slots where slot != except { deliver(frame, to: .init(side: side, slot: slot), kind) }
            case .relay(let relay):
                for other in hubs.indices where other != side { relays[other].append(relay) }
            case .ping(let places):
                for place in places {
                    hubs[place.loop].advanceTime(to: now)
                    guard let ping = hubs[place.loop].acknowledgementPing(for: place.slot) else { continue }
                    deliver(ping, to: .init(side: place.loop, slot: place.slot))
                }
            default: Issue.record("unexpected: \(action)")
            }
        }
    }

    private mutating func deliver(_ frame: Frame, to place: HistoryClient.Place, _ kind: FrameKind = .message) {
        if kind.needsAcknowledgement { unacknowledged.insert(place) }
        guard let number = clients.firstIndex(where: { $0.place == place }) else { return }
        // A join's answer is the first frame of a socket but for pings.
        if clients[number].owedFrom == nil, !frame.isPing { clients[number].owedFrom = messages.count }
        clients[number].onTheWay.append(frame)
    }
}
