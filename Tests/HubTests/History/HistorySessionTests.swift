import Hub
import TestSupport
import Testing
import Wire

/// Clients that name no id: who comes back and who comes for the first time.
@Suite struct HistorySessionTests {
    private static let asked = #"{"broadcast":{"history":true}}"#

    private struct Room {
        let stage: Stage
        let store: HistoryStore
        let key = ChannelKey(topic: "realtime:a", isPrivate: false)
        private var n = 0

        init(window: Int64 = 120_000) throws {
            store = HistoryStore(window: window)
            stage = Stage(
                hub: Hub(loop: 0, verifier: TestVerifier(), random: SeededGenerator(seed: 1), history: store))
            // Somebody who stays, so that the channel does.
            stage.connect(9, subject: "stays")
            try stage.join("realtime:a", 9, HistorySessionTests.asked)
        }

        mutating func publish() throws {
            n += 1
            stage.hub.publishMessage(.text(Array(#"{"n":\#(n)}"#.utf8)), to: key)
            _ = try stage.watch { _ in }
        }

        /// What comes behind the reply, by its number. Of the sockets that are asked whether they live those of `alive`
        /// answer; for the others the join waits a second.
        func join(
            _ slot: Slot, _ subject: String?, ref: String = "1", session: String? = nil, alive: [Slot] = [],
            _ config: String = HistorySessionTests.asked
        ) throws -> [Int] {
            stage.connect(slot, subject: subject, session: session)
            var lines = try stage.join("realtime:a", slot, ref: ref, config)
            let asked = stage.actions.flatMap {
                if case .ping(let places) = $0 { places.map(\.slot) } else { [Slot]() }
            }
            for other in asked where alive.contains(other) {
                let ping = try #require(stage.hub.acknowledgementPing(for: other))
                stage.hub.receivePong(ping.bytes.dropFirst(2), from: other)
                lines += try stage.watch { $0.wake(at: stage.now) }
            }
            if !lines.contains(where: { $0.contains("phx_reply") }) { lines += try stage.tick(after: 1_010) }
            let reply = try #require(lines.firstIndex { $0.contains("phx_reply") })
            return try lines[(reply + 1)...].compactMap {
                try JSON(parsing: Array($0.drop { $0 != "[" }.utf8)).elements[4]["n"]?.int
            }
        }

        /// The socket answers a ping: it has all that was sent so far.
        func acknowledge(_ slot: Slot) throws {
            try stage.tick(after: 1_000)
            let ping = try #require(stage.hub.acknowledgementPing(for: slot))
            stage.hub.receivePong(ping.bytes.dropFirst(2), from: slot)
        }
    }

    @Test func whoWasLostGetsWhatCameSince() throws {
        var room = try Room()
        #expect(try room.join(1, "ann") == [])
        try room.publish()
        try room.acknowledge(1)
        try room.publish()
        try room.stage.disconnect(1)
        try room.publish()
        #expect(try room.join(2, "ann", ref: "2") == [2, 3], "the second was never acknowledged")
    }

    @Test func aFirstJoinGetsNothing() throws {
        var room = try Room()
        try room.publish()
        #expect(try room.join(1, "bob") == [])
        #expect(try room.join(2, "ann") == [])
        try room.stage.disconnect(1)
        try room.publish()
        #expect(try room.join(3, "cid") == [], "somebody else was lost")
    }

    /// A client may come with as many presence keys as it likes. Less is remembered then, and nothing is missed.
    @Test func whatOneUserLeavesBehindIsBounded() throws {
        func keyed(_ number: Int) -> String {
            #"{"broadcast":{"history":true},"presence":{"key":"k\#(number)"}}"#
        }
        var room = try Room()
        #expect(try room.join(2, "bob") == [])
        try room.stage.disconnect(2)
        for number in 0..<300 {
            #expect(try room.join(1, "ann", keyed(number)) == [])
            try room.stage.disconnect(1)
            if number % 100 == 99 { try room.stage.tick(after: 10_000) }
        }
        let left = room.store.awaited
        #expect(left.sessions == 1 + 100 && (1...9).contains(left.places), "\(left)")
        try room.publish()
        #expect(try room.join(2, "bob") == [1])
        #expect(try room.join(3, "ann", keyed(5)) == [1])
        #expect(try room.join(4, "ann", keyed(299)) == [1], "it gave way")
        #expect(try room.join(5, "cid", keyed(299)) == [], "somebody else")
        for slot in Slot(2)...5 { try room.stage.say(#"["1","2","realtime:a","phx_leave",{}]"#, from: slot) }
        try room.stage.tick(after: 136_000)
        #expect(room.store.awaited == (0, 0))
        #expect(try room.join(6, "ann", keyed(299)) == [])
    }

    @Test func whoLeftHasNothingComing() throws {
        var room = try Room()
        #expect(try room.join(1, "ann") == [])
        try room.stage.say(#"["1","2","realtime:a","phx_leave",{}]"#, from: 1)
        try room.publish()
        #expect(try room.join(2, "ann", ref: "3") == [])
    }

    @Test func afterTheWindowNobodyIsExpected() throws {
        var room = try Room(window: 5_000)
        #expect(try room.join(1, "ann") == [])
        try room.stage.disconnect(1)
        try room.publish()
        try room.stage.tick(after: 5_001)
        #expect(try room.join(2, "ann", ref: "2") == [])
    }

    /// Refs tell nothing between two sockets: some clients begin them anew with each.
    @Test(arguments: ["1", "2"]) func aSocketThatIsDeadAndNotNoticedCounts(ref: String) throws {
        var room = try Room()
        #expect(try room.join(1, "ann") == [])
        try room.publish()
        #expect(try room.join(2, "ann", ref: ref) == [1], "of the first socket nothing was acknowledged")
        try room.acknowledge(1)
        try room.acknowledge(2)
        #expect(try room.join(3, "ann", ref: "3") == [])
        #expect(try room.join(4, nil) == [])
        try room.publish()
        #expect(try room.join(5, nil, ref: "1") == [], "without a user anybody may be anybody")
        #expect(try room.join(6, nil, ref: "2") == [2], "but it is one that was here, and none of them answers")
    }

    /// Who answers is somebody else, so that who joins missed nothing.
    @Test(arguments: ["1", "2"]) func aSocketThatLivesDoesNotCount(ref: String) throws {
        var room = try Room()
        #expect(try room.join(1, "ann") == [])
        try room.publish()
        #expect(try room.join(2, "ann", ref: ref, alive: [1]) == [])
    }

    /// Each comes back once for what one of them missed, and then only for what came since.
    @Test(arguments: [("2", nil), ("1", "phone")] as [(String, String?)])
    func whoFlapsIsNotSentTheSameAgain(ref: String, session: String?) throws {
        var room = try Room()
        #expect(try room.join(1, "ann", session: session) == [])
        for turn in 1...4 {
            try room.publish()
            try room.stage.disconnect(Slot(turn))
            #expect(try room.join(Slot(turn) + 1, "ann", ref: ref, session: session) == [turn])
            try room.acknowledge(Slot(turn) + 1)
        }
    }

    /// Nothing tells of the second that it is not new; so the first is not taken to be back.
    @Test func aNewOneTakesNothingFromOneThatIsAway() throws {
        var room = try Room()
        #expect(try room.join(1, "ann") == [])
        try room.stage.disconnect(1)
        try room.publish()
        #expect(try room.join(2, "ann") == [1])
        try room.acknowledge(2)
        try room.stage.disconnect(2)
        #expect(try room.join(3, "ann") == [1])
    }

    /// A page that is unloaded says good-bye, as a leave does.
    @Test func aPageThatIsReloaded() throws {
        var room = try Room()
        #expect(try room.join(1, "ann") == [])
        try room.stage.disconnect(1, isUnloaded: true)
        try room.publish()
        #expect(try room.join(2, "ann") == [])
    }

    /// A token tells who comes back, the last one of a socket as much as the first.
    @Test func whoseTokenChangedComesBackWithTheNewOne() throws {
        var room = try Room()
        #expect(try room.join(1, "ann") == [])
        try room.stage.say(#"["1","5","realtime:a","access_token",{"access_token":"good anon 9000"}]"#, from: 1)
        try room.publish()
        try room.stage.disconnect(1)
        try room.publish()
        #expect(try room.join(2, "ann", ref: "2") == [])
        #expect(try room.join(3, nil, ref: "2") == [1, 2])
    }

    /// Its client gave up before it was told anything, and its refs count on.
    @Test func aJoinThatIsCutOffAtOnceHidesNothing() throws {
        var room = try Room()
        for slot in Slot(1)...2 { #expect(try room.join(slot, "ann", alive: [1]) == []) }
        try room.acknowledge(1)
        try room.acknowledge(2)
        try room.stage.disconnect(1)
        try room.publish()
        room.stage.connect(3, subject: "ann")
        let lines = try room.stage.join("realtime:a", 3, ref: "1", Self.asked)
        #expect(!lines.contains { $0.contains("phx_reply") }, "it waits for the second")
        try room.stage.disconnect(3)
        #expect(try room.join(4, "ann", ref: "2", alive: [2]) == [1])
        try room.acknowledge(4)
        #expect(try room.join(5, "ann", ref: "2", alive: [2, 4]) == [1], "it may be the first")
    }

    @Test func twoOfOneUserBothGetEverything() throws {
        var room = try Room()
        for slot in Slot(1)...2 { #expect(try room.join(slot, "ann") == []) }
        try room.publish()
        try room.acknowledge(1)
        for slot in Slot(1)...2 { try room.stage.disconnect(slot) }
        try room.publish()
        #expect(try room.join(3, "ann", ref: "2") == [1, 2])
        #expect(try room.join(4, "ann", ref: "2", alive: [3]) == [1, 2], "which of them is which nobody knows")
    }

    @Test func theChannelWaitsForThem() throws {
        let room = try Room()
        #expect(try room.join(1, "ann") == [])
        try room.stage.disconnect(9)
        try room.stage.disconnect(1)
        #expect(room.stage.hub.channelCount == 0)
        _ = try room.stage.watch { $0.publishMessage(.text(Array(#"{"n":7}"#.utf8)), to: room.key) }
        try room.stage.tick(after: 50_000)
        #expect(try room.join(2, "ann", ref: "2") == [7])
    }

    @Test(arguments: [(false, [2]), (true, [1, 2])]) func ownMessages(_ echoes: Bool, _ expected: [Int]) throws {
        let room = try Room()
        let config = #"{"broadcast":{"history":true,"self":\#(echoes)}}"#
        #expect(try room.join(1, "ann", session: nil, config) == [])
        try room.stage.say(#"["1","9","realtime:a","broadcast",{"n":1}]"#, from: 1)
        try room.stage.say(#"["1","9","realtime:a","broadcast",{"n":2}]"#, from: 9)
        try room.stage.disconnect(1)
        #expect(try room.join(2, "ann", ref: "2", session: nil, config) == expected)
    }
}
