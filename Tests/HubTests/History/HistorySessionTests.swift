import Hub
import TestSupport
import Testing
import Wire

/// Clients that name no id: who comes back and who comes for the first time.
@Suite struct HistorySessionTests {
    private static let asked = #"{"broadcast":{"history":true}}"#

    private struct Room {
        let stage: Stage
        let key = ChannelKey(topic: "realtime:a", isPrivate: false)
        private var n = 0

        init(window: Int64 = 120_000) throws {
            stage = Stage(
                hub: Hub(
                    loop: 0, verifier: TokenBook(), random: SeededGenerator(seed: 1),
                    history: HistoryBook(window: window)))
            // Somebody who stays, so that the channel does.
            stage.connect(9, subject: "stays")
            try stage.join("realtime:a", 9, HistorySessionTests.asked)
        }

        mutating func publish() throws {
            n += 1
            stage.hub.publish(.text(Array(#"{"n":\#(n)}"#.utf8)), to: key)
            _ = try stage.watch { _ in }
        }

        /// What comes behind the reply, by its number.
        func join(_ slot: Slot, _ subject: String?, ref: String = "1", _ config: String = HistorySessionTests.asked)
            throws -> [Int]
        {
            stage.connect(slot, subject: subject)
            return try stage.join("realtime:a", slot, ref: ref, config).dropFirst().compactMap {
                try JSON(parsing: Array($0.drop { $0 != "[" }.utf8)).elements[4]["n"]?.int
            }
        }

        /// The socket answers a ping: it has all that was sent so far.
        func prove(_ slot: Slot) throws {
            try stage.tick(after: 1_000)
            let ping = try #require(stage.hub.proofPing(for: slot))
            stage.hub.pong(ping.bytes.dropFirst(2), from: slot)
        }
    }

    @Test func whoWasLostGetsWhatCameSince() throws {
        var room = try Room()
        #expect(try room.join(1, "ann") == [])
        try room.publish()
        try room.prove(1)
        try room.publish()
        try room.stage.disconnect(1)
        try room.publish()
        #expect(try room.join(2, "ann", ref: "2") == [2, 3], "the second was never proven to have arrived")
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

    @Test func aSocketThatIsDeadAndNotNoticedCounts() throws {
        var room = try Room()
        #expect(try room.join(1, "ann") == [])
        try room.publish()
        #expect(try room.join(2, "ann", ref: "2") == [1], "of the first socket nothing was proven")
        try room.prove(1)
        try room.prove(2)
        #expect(try room.join(3, "ann", ref: "3") == [])
        #expect(try room.join(4, nil) == [])
        try room.publish()
        #expect(try room.join(5, nil, ref: "2") == [], "without a user anybody may be anybody")
    }

    @Test func twoOfOneUserBothGetEverything() throws {
        var room = try Room()
        for slot in Slot(1)...2 { #expect(try room.join(slot, "ann") == []) }
        try room.publish()
        try room.prove(1)
        for slot in Slot(1)...2 { try room.stage.disconnect(slot) }
        try room.publish()
        #expect(try room.join(3, "ann", ref: "2") == [1, 2])
        #expect(try room.join(4, "ann", ref: "2") == [1, 2], "which of them is which nobody knows")
    }

    @Test func theChannelWaitsForThem() throws {
        let room = try Room()
        #expect(try room.join(1, "ann") == [])
        try room.stage.disconnect(9)
        try room.stage.disconnect(1)
        #expect(room.stage.hub.channelCount == 0)
        _ = try room.stage.watch { $0.publish(.text(Array(#"{"n":7}"#.utf8)), to: room.key) }
        try room.stage.tick(after: 50_000)
        #expect(try room.join(2, "ann", ref: "2") == [7])
    }

    @Test(arguments: [(false, [2]), (true, [1, 2])]) func ownMessages(_ echoes: Bool, _ expected: [Int]) throws {
        let room = try Room()
        let config = #"{"broadcast":{"history":true,"self":\#(echoes)}}"#
        #expect(try room.join(1, "ann", config) == [])
        try room.stage.say(#"["1","9","realtime:a","broadcast",{"n":1}]"#, from: 1)
        try room.stage.say(#"["1","9","realtime:a","broadcast",{"n":2}]"#, from: 9)
        try room.stage.disconnect(1)
        #expect(try room.join(2, "ann", ref: "2", config) == expected)
    }
}
