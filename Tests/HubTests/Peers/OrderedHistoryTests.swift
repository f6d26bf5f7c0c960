import Hub
import Testing
import Wire

/// Broadcasts to channels whose history several hubs keep: all of them number a message in one order before anybody is told of it.
@Suite struct OrderedHistoryTests {
    private static let key = ChannelKey(topic: "realtime:a", isPrivate: false)
    private static let asked = #"{"broadcast":{"history":true}}"#
    private let store = HistoryStore(limits: HubLimits())

    /// A hub whose log is at its beginning, with two members who asked for history (1 and 2) and one who did not (3).
    private func room() throws -> Stage {
        let stage = Stage(history: store, hasPeers: true)
        _ = store.advanceLog(history: 77, entry: 1, index: 0)
        for slot: Slot in [1, 2] {
            stage.connect(slot)
            try stage.join("realtime:a", slot, Self.asked)
        }
        stage.connect(3)
        try stage.join("realtime:a", 3)
        return stage
    }

    private func say(_ stage: Stage, _ n: Int, from slot: Slot) throws -> Relay? {
        let said = try stage.say(
            #"["1","9","realtime:a","broadcast",{"type":"broadcast","event":"e","payload":{"n":\#(n)}}]"#, from: slot)
        #expect(said.count == 1 && said[0].hasPrefix("relay ordered realtime:a"), "nobody is told: \(said)")
        return stage.relays.first
    }

    /// What came out of the log reaches the store first, and then the loops.
    private func number(_ relays: [Relay?], from entry: Int, _ stage: Stage) throws -> [[String]] {
        var numbered: [Relay] = []
        for (index, relay) in relays.enumerated() {
            guard case .ordered(let key, let broadcast, isNumbered: false) = relay else { continue }
            let place = store.advanceLog(history: 77, entry: entry, index: index)
            #expect(store.append(broadcast, to: key, at: place, stage.now))
            store.countArrived(key)
            numbered.append(.ordered(key, broadcast, isNumbered: true))
        }
        return try numbered.map { relay in try stage.watch { $0.applyRelay(relay) } }
    }

    @Test func whoSentItIsNotToldAndAllOthersAre() throws {
        let stage = try room()
        // Both are numbered before the loop hears of the first.
        let relays = [try say(stage, 1, from: 1), try say(stage, 2, from: 2)]
        let told = try number(relays, from: 2, stage)
        let all = told.joined()
        #expect(all.contains { $0.hasPrefix("2 ⇐") && $0.contains(#""n":1"#) })
        #expect(all.contains { $0.hasPrefix("1 ⇐") && $0.contains(#""n":2"#) })
        #expect(all.filter { $0.hasPrefix("3 ⇐") }.count == 2)
        #expect(!all.contains { $0.hasPrefix("1 ⇐") && $0.contains(#""n":1"#) })
        #expect(!all.contains { $0.hasPrefix("2 ⇐") && $0.contains(#""n":2"#) })
    }

    /// The log is lost while messages are on their way through it: those behind them wait until they are numbered.
    @Test func nothingOvertakesWhatIsOnItsWayWhenTheLogIsLost() throws {
        let stage = try room()
        let first = try say(stage, 1, from: 1)
        store.leaveLog(chance: 5)
        let second = try say(stage, 2, from: 1)
        for relay in [first, second] {
            guard case .ordered(let key, let broadcast, isNumbered: false) = relay else { continue }
            #expect(store.append(broadcast, to: key, at: nil, stage.now))
            store.countArrived(key)
        }
        // Nobody waits for anybody any more.
        let told = try stage.say(
            #"["1","9","realtime:a","broadcast",{"type":"broadcast","event":"e","payload":{"n":3}}]"#, from: 1)
        let heard = told.filter { $0.hasPrefix("2 ⇐") || $0.hasPrefix("1,2 ⇐") }.joined()
        let places = (1...3).compactMap { heard.firstRange(of: "\"n\":\($0)")?.lowerBound }
        #expect(places.count == 3 && places == places.sorted(), "\(told)")
    }

    @Test func anIDOfOneHubCountsOnAnother() throws {
        let stage = try room()
        let told = try number([try say(stage, 1, from: 3), try say(stage, 2, from: 3)], from: 5, stage)
        let first = try #require(told.joined().first { $0.hasPrefix("1,2 ⇐") && $0.contains(#""n":1"#) })
        let id = try #require(first.split(separator: #""history":""#).last?.prefix { $0 != "\"" })

        // Another hub, which other hubs asked to keep the channel too before that.
        let others = HistoryStore(limits: HubLimits())
        _ = others.advanceLog(history: 77, entry: 4, index: 0)
        others.keepChannel(Self.key, HistoryWish(limit: 10, lifetime: 60_000), for: 1, chance: 5, at: stage.now)
        for n in 1...2 {
            let place = others.advanceLog(history: 77, entry: 5, index: n - 1)
            let message = BroadcastMessage.text(Array(#"{"type":"broadcast","event":"e","payload":{"n":\#(n)}}"#.utf8))
            #expect(others.append(OrderedBroadcast(message), to: Self.key, at: place, stage.now))
        }
        let other = Stage(history: others, hasPeers: true)
        other.connect(4)
        let said = try other.join("realtime:a", 4, #"{"broadcast":{"history":{"after":"\#(id)"}}}"#)
        #expect(said.contains { $0.contains(#""complete":true"#) })
        #expect(said.filter { $0.contains(#""n":"#) }.count == 1 && said.contains { $0.contains(#""n":2"#) })
    }

    @Test func aHubThatBeganLaterSaysWhatItDoesNotHave() throws {
        let stage = try room()
        let told = try number([try say(stage, 1, from: 3)], from: 5, stage)
        let first = try #require(told.joined().first { $0.contains(#""n":1"#) && $0.hasPrefix("1,2") })
        let id = try #require(first.split(separator: #""history":""#).last?.prefix { $0 != "\"" })
        let others = HistoryStore(limits: HubLimits())
        _ = others.advanceLog(history: 77, entry: 9, index: 0)
        let other = Stage(history: others, hasPeers: true)
        other.connect(4)
        let said = try other.join("realtime:a", 4, #"{"broadcast":{"history":{"after":"\#(id)"}}}"#)
        #expect(said.contains { $0.contains(#""complete":false"#) })
    }

    @Test func withoutTheLogHubsGoOnAloneAndSaySo() throws {
        let stage = try room()
        let told = try number([try say(stage, 1, from: 3)], from: 5, stage)
        let first = try #require(told.joined().first { $0.contains(#""n":1"#) && $0.hasPrefix("1,2") })
        let before = try #require(first.split(separator: #""history":""#).last?.prefix { $0 != "\"" })
        store.leaveLog(chance: 99)
        let alone = try stage.say(
            #"["1","9","realtime:a","broadcast",{"type":"broadcast","event":"e","payload":{"n":2}}]"#, from: 3)
        #expect(alone.contains { $0.hasPrefix("1,2 ⇐") && $0.contains(#""n":2"#) }, "at once")
        let place = store.advanceLog(history: 77, entry: 6, index: 0)
        let late = BroadcastMessage.text(Array(#"{"type":"broadcast","event":"e","payload":{"n":3}}"#.utf8))
        #expect(store.append(OrderedBroadcast(late), to: Self.key, at: place, stage.now))
        stage.connect(4)
        let said = try stage.join("realtime:a", 4, #"{"broadcast":{"history":{"after":"\#(before)"}}}"#)
        #expect(said.contains { $0.contains(#""complete":false"#) }, "others do not have what was sent here alone")
    }

    @Test func anotherLogIsAnotherHistory() throws {
        let stage = try room()
        let told = try number([try say(stage, 1, from: 3)], from: 5, stage)
        #expect(told.joined().contains { $0.contains(#""history":"25."#) })
        let place = store.advanceLog(history: 78, entry: 0, index: 0)
        let message = BroadcastMessage.text(Array(#"{"type":"broadcast","event":"e","payload":{"n":2}}"#.utf8))
        #expect(store.append(OrderedBroadcast(message), to: Self.key, at: place, stage.now))
        let relay = Relay.ordered(Self.key, OrderedBroadcast(message), isNumbered: true)
        let said = try stage.watch { $0.applyRelay(relay) }
        #expect(said.contains { $0.hasPrefix("1,2 ⇐") && $0.contains(#""history":"26."#) })
    }

    @Test func whatSQLSentIsNumberedOnceHoweverManyHubsSayIt() throws {
        let stage = try room()
        let message = BroadcastMessage.text(Array(#"{"type":"broadcast","event":"e","payload":{"n":1}}"#.utf8))
        let row = DatabaseBroadcast(key: Self.key, id: "7", broadcast: message)
        let said = try stage.watch { $0.deliverEvent(.broadcast(row)) }
        #expect(said.contains { $0.hasPrefix("3 ⇐") }, "who has no history is told at once")
        #expect(!said.contains { $0.hasPrefix("1,2 ⇐") })
        guard case .ordered(_, let ordered, _) = stage.relays.first else { return #expect(Bool(false)) }
        #expect(store.append(ordered, to: Self.key, at: store.advanceLog(history: 77, entry: 3, index: 1), stage.now))
        #expect(!store.append(ordered, to: Self.key, at: store.advanceLog(history: 77, entry: 4, index: 1), stage.now))
        let told = try stage.watch { $0.applyRelay(.ordered(Self.key, ordered, isNumbered: true)) }
        #expect(told.count == 1 && told[0].hasPrefix("1,2 ⇐"))
    }

    /// A log that somebody else wrote in: beyond what positions reach ids are this hub's alone, and nothing overflows.
    @Test func aPlaceBeyondAllPositionsIsNone() throws {
        let stage = try room()
        for (entry, index) in [(Int.max, 1), (Int.max >> 20, Int.max), (Int.max >> 20, 1), (1 << 42, 1)] {
            #expect(store.advanceLog(history: 78, entry: entry, index: index) == nil)
        }
        let hostile = (1...40).compactMap { store.advanceLog(history: 100 + UInt64($0), entry: 1 << 40, index: 1) }
        for place in hostile {
            let broadcast = OrderedBroadcast(
                .user(UserBroadcast(event: "e", encoding: .json, payload: Array("{}".utf8)[...], metadata: nil)))
            _ = store.append(broadcast, to: Self.key, at: place, stage.now)
        }
        #expect(store.advanceLog(history: 79, entry: 1, index: 1) != nil)
    }
}
