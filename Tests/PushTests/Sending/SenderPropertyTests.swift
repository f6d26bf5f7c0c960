import Hub
import TestSupport
import Testing

@testable import Push

/// Everything that can go wrong on the way, at random, and what must hold whatever happens.
struct SenderPropertyTests {
    @Test(arguments: 1...6 as ClosedRange<UInt64>)
    func eachHasOneOutcomeAndLanesKeepTheirOrder(_ seed: UInt64) throws {
        var storm = try Storm(seed: seed)
        for _ in 0..<1200 { try storm.step() }
        try storm.calm()

        let bench = storm.bench
        #expect(bench.outcomes.count == storm.added.count)
        #expect(Set(bench.outcomes.map(\.push.id)).count == storm.added.count)
        #expect(bench.inFlight == 0 && bench.sender.queue.count == 0 && bench.sender.queue.lanes.isEmpty)
        #expect(bench.sender.inFlight.isEmpty)
        // What happened at all, so that the rest means something.
        #expect(Set(bench.outcomes.map(\.outcome.name)).count >= 8)
        #expect(
            bench.sender.counts.goAways > 5 && bench.sender.counts.ambiguous > 5 && bench.sender.counts.retries > 50)

        for (id, times) in storm.taken.values.reduce(
            into: [PushID: Int](),
            { counts, ids in
                for id in ids { counts[id, default: 0] += 1 }
            }) where times > 1
        {
            #expect(storm.ambiguous.contains(id), "taken \(times) times, and it was known")
        }
        let delivered = Set(bench.outcomes.filter { $0.outcome == .delivered }.map(\.push.id))
        #expect(delivered.isSubset(of: Set(storm.taken.values.joined())))
        for (lane, ids) in storm.taken {
            let places = ids.map { storm.place[$0] ?? -1 }
            #expect(places == places.sorted(), "lane \(lane)")
        }
        #expect(storm.activitiesSentAfterDoubt == 0 && storm.crowdedLanes == 0 && storm.beyondLimit == 0)
        #expect(zip(storm.mints, storm.mints.dropFirst()).allSatisfy { $1 - $0 >= 20 * 60_000 })
    }
}

/// An APNs that does whatever it likes, and the account of what it saw.
struct Storm {
    var bench: SenderBench
    private var random: SeededGenerator
    private(set) var added: [PushID] = []
    /// In which order a lane's were added.
    private(set) var place: [PushID: Int] = [:]
    /// What APNs took, by lane, in order.
    private(set) var taken: [String: [PushID]] = [:]
    /// Left, and was not answered.
    private(set) var ambiguous: Set<PushID> = []
    private(set) var activitiesSentAfterDoubt = 0
    private(set) var crowdedLanes = 0
    private(set) var beyondLimit = 0
    private(set) var mints: [Int64] = []
    private var watched = 0

    init(seed: UInt64) throws {
        bench = try SenderBench(seed: seed) {
            $0.limits.queue = 60
            $0.limits.connections = 1 + Int(seed % 3)
        }
        random = SeededGenerator(seed: seed)
    }

    private mutating func chance(_ one: Int) -> Bool { Int.random(in: 0..<one, using: &random) == 0 }

    mutating func step() throws {
        if chance(2) { try add(Int.random(in: 1...3, using: &random)) }
        bench.transport.limit = chance(10) ? Int.random(in: 1...40, using: &random) : bench.transport.limit
        bench.transport.opens = !chance(20)
        bench.transport.isFull = chance(50)
        for connection in bench.sender.servers.keys.sorted() {
            happen(on: connection)
        }
        bench.turn()
        watch()
        if chance(3) { bench.now = bench.now.advanced(by: Int64.random(in: 1...20_000, using: &random)) }
        bench.transport.isFull = false
        bench.turn()
        watch()
    }

    /// Everything works again, until all is told.
    mutating func calm() throws {
        bench.transport.opens = true
        bench.transport.limit = 100
        for _ in 0..<5000 where bench.outcomes.count < added.count {
            for connection in bench.sender.servers.keys.sorted() {
                if isConnecting(connection) { bench.transport.events.append((connection, .opened)) }
                for ticket in tickets(connection) { answer(ticket, connection, Answer(status: 200)) }
            }
            bench.turn()
            watch()
            bench.pass(seconds: 1)
            watch()
        }
    }

    private mutating func add(_ count: Int) throws {
        for _ in 0..<count {
            let lane = Int.random(in: 0..<15, using: &random)
            let isActivity = lane % 3 == 0
            let push = try Samples.push(
                lane, type: isActivity ? .liveActivity : .alert, lane: "lane \(lane)",
                replaces: isActivity && chance(2),
                payload: chance(100) ? String(repeating: "x", count: 5000) : "{}",
                seconds: (bench.now.unix - Samples.start.unix) / 1000 + Int64.random(in: 1...400, using: &random),
                environment: lane % 5 == 0 ? .production : .sandbox)
            place[push.id] = added.count
            added.append(push.id)
            bench.transport.known[push.id.text] = push
            bench.sender.add(push, at: bench.now)
        }
    }

    private func isConnecting(_ connection: UInt64) -> Bool {
        bench.sender.servers[connection].flatMap { bench.sender.pools[$0]?.links[connection]?.state } == .connecting
    }

    private func tickets(_ connection: UInt64) -> [SendQueue.Ticket] {
        (bench.transport.onTheirWay[connection] ?? [:]).keys.sorted()
    }

    private mutating func happen(on connection: UInt64) {
        if isConnecting(connection) {
            if chance(2) { bench.transport.events.append((connection, chance(4) ? .closed(why: "refused") : .opened)) }
            return
        }
        for ticket in tickets(connection) where chance(2) { befall(ticket, connection) }
        if chance(30) { bench.transport.events.append((connection, .goAway(why: "Shutdown"))) }
        if chance(40) { bench.transport.events.append((connection, .pong)) }
        if chance(40) {
            for ticket in tickets(connection) { vanish(ticket, connection) }
            bench.transport.events.append((connection, .closed(why: "reset")))
        }
    }

    private mutating func befall(_ ticket: SendQueue.Ticket, _ connection: UInt64) {
        switch Int.random(in: 0..<40, using: &random) {
        case 0: vanish(ticket, connection)
        case 1:
            if bench.transport.land(ticket, connection) != nil {
                bench.transport.events.append((connection, .unseen(ticket)))
            }
        case 2: answer(ticket, connection, Answer(status: 410, reason: "Unregistered"))
        case 3:
            // The first goes to the other environment, the second is for good.
            let reason = chance(2) ? "BadDeviceToken" : "DeviceTokenNotForTopic"
            answer(ticket, connection, Answer(status: 400, reason: reason))
        case 4: answer(ticket, connection, Answer(status: 413, reason: "PayloadTooLarge"))
        case 5: answer(ticket, connection, Answer(status: 429, reason: "TooManyRequests"))
        case 6: answer(ticket, connection, Answer(status: 503, reason: "ServiceUnavailable"))
        case 7 where chance(5): answer(ticket, connection, Answer(status: 403, reason: "ExpiredProviderToken"))
        case 8 where chance(5): answer(ticket, connection, Answer(status: 403, reason: "InvalidProviderToken"))
        case 9 where chance(5): answer(ticket, connection, Answer(status: 403, reason: "UnrelatedKeyIdInToken"))
        case 10 where chance(5): answer(ticket, connection, Answer(status: 429, reason: "TooManyProviderTokenUpdates"))
        case 11...12: break  // never answered
        default: answer(ticket, connection, Answer(status: 200))
        }
    }

    private mutating func answer(_ ticket: SendQueue.Ticket, _ connection: UInt64, _ answer: Answer) {
        guard let request = bench.transport.land(ticket, connection) else { return }
        if answer.status == 200 { taken[request.push.lane.text, default: []].append(request.push.id) }
        bench.transport.events.append((connection, .answered(ticket, answer)))
    }

    /// Taken or not, there is no answer.
    private mutating func vanish(_ ticket: SendQueue.Ticket, _ connection: UInt64) {
        guard let request = bench.transport.land(ticket, connection) else { return }
        doubt(request.push)
        bench.transport.events.append((connection, .lost(ticket)))
    }

    private mutating func doubt(_ push: Push) {
        ambiguous.insert(push.id)
        if chance(2) { taken[push.lane.text, default: []].append(push.id) }
    }

    /// Looks at what was sent since, and at what is on its way.
    private mutating func watch() {
        for push in bench.transport.doubtful { doubt(push) }
        bench.transport.doubtful = []
        let posts = bench.transport.posts
        for post in posts[watched...] where post.request.push.type == .liveActivity {
            if ambiguous.contains(post.request.push.id) { activitiesSentAfterDoubt += 1 }
        }
        watched = posts.count
        let lanes = bench.transport.onTheirWay.values.flatMap { $0.values.map(\.push.lane) }
        if Set(lanes).count < lanes.count { crowdedLanes += 1 }
        if bench.transport.onTheirWay.values.contains(where: { $0.count > 40 }) { beyondLimit += 1 }
        if bench.sender.dialect.credentialsMade > mints.count { mints.append(bench.now.monotonic) }
    }
}
