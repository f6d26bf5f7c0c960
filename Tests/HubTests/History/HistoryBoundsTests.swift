import Foundation
import Hub
import TestSupport
import Testing
import Wire

/// How much is kept, and for how long.
@Suite struct HistoryBoundsTests {
    private let limits: HubLimits = {
        var limits = HubLimits()
        limits.historyMessages = 10
        limits.historySeconds = 30
        limits.historyBytesPerChannel = 4_000
        limits.historyBytes = 12_000
        limits.historyBytesPerReturn = 1_000
        return limits
    }()

    private func room(_ store: HistoryStore, loop: Int = 0) -> Stage {
        Stage(
            hub: Hub(
                loop: loop, limits: limits, verifier: TestVerifier(), random: SeededGenerator(seed: UInt64(loop)),
                history: store))
    }

    private func config(_ history: String) -> String { #"{"broadcast":{"history":\#(history)}}"# }

    private func publish(_ stage: Stage, _ topic: String = "realtime:a", bytes: Int = 20, times: Int = 1) throws {
        let text = #"{"x":""# + String(repeating: "x", count: bytes - 8) + #""}"#
        for _ in 0..<times {
            stage.hub.publishMessage(.text(Array(text.utf8)), to: ChannelKey(topic: topic, isPrivate: false))
            _ = try stage.watch { _ in }
        }
    }

    @Test(arguments: [("true", 10), (#"{"limit":3}"#, 3), (#"{"limit":99}"#, 10), (#"{"limit":0}"#, 1)])
    func soManyMessages(_ wish: String, _ count: Int) throws {
        let store = HistoryStore(limits: limits)
        let stage = room(store)
        stage.connect(1)
        try stage.join("realtime:a", 1, config(wish))
        try publish(stage, times: 30)
        try stage.tick(after: 1)
        #expect(store.figures.messages == count)
    }

    @Test func theMostThatAnybodyAskedForCounts() throws {
        let store = HistoryStore(limits: limits)
        let stage = room(store)
        for (slot, wish) in [(Slot(1), #"{"limit":3}"#), (2, #"{"limit":5}"#), (3, #"{"limit":4}"#)] {
            stage.connect(slot)
            try stage.join("realtime:a", slot, config(wish))
        }
        try publish(stage, times: 30)
        try stage.tick(after: 1)
        #expect(store.figures.messages == 5)
    }

    @Test(arguments: [("true", 30), (#"{"seconds":7}"#, 7), (#"{"seconds":99}"#, 30), (#"{"seconds":0}"#, 1)])
    func forSoManySeconds(_ wish: String, _ seconds: Int64) throws {
        let store = HistoryStore(limits: limits)
        let stage = room(store)
        stage.connect(1)
        try stage.join("realtime:a", 1, config(wish))
        try stage.tick(after: 1_000)
        try publish(stage)
        try stage.tick(after: seconds * 1000)
        #expect(store.figures.messages == 1)
        try stage.tick(after: 1_000)
        #expect(store.figures.messages == 0)
        #expect(store.figures.bytes == 0)
    }

    @Test func soManyBytesForAChannelAndForAll() throws {
        let store = HistoryStore(limits: limits)
        let stage = room(store)
        stage.connect(1)
        for topic in ["a", "b", "c", "d"] {
            try stage.join("realtime:\(topic)", 1, config("true"))
            try publish(stage, "realtime:\(topic)", bytes: 1_000, times: 8)
            try stage.tick(after: 1_000)
            #expect(store.figures.bytes <= limits.historyBytes)
            #expect(store.figures.messages <= 12)
        }
        #expect(store.figures.messages >= 9)
        try publish(stage, "realtime:d", bytes: 5_000)
        try stage.tick(after: 1_000)
        #expect(store.figures.bytes <= limits.historyBytes)
    }

    @Test func nothingIsKeptWhereNobodyAsks() throws {
        let store = HistoryStore(limits: limits)
        let stage = room(store)
        stage.connect(1)
        try stage.join("realtime:a", 1)
        try publish(stage)
        try stage.join("realtime:b", 1, config("true"))
        try publish(stage)
        #expect(store.figures == (1, 0, 0))
    }

    @Test func aChannelWithoutMembersGoes() throws {
        let store = HistoryStore(limits: limits, window: 0)
        let stage = room(store)
        stage.connect(1)
        try stage.join("realtime:a", 1, config("true"))
        try publish(stage, times: 3)
        try stage.disconnect(1)
        try publish(stage)
        #expect(stage.hub.channelCount == 0)
        #expect(store.figures.messages == 4, "for those who come back")
        try stage.tick(after: 29_000)
        #expect(store.figures.channels == 1)
        try stage.tick(after: 2_000)
        #expect(store.figures == (0, 0, 0))
    }

    /// A loop that was not yet told of a message has it waiting in its inbox; its members still get it.
    @Test func aSlowLoopLosesNothingLive() throws {
        let store = HistoryStore(limits: limits)
        let (quick, slow) = (room(store), room(store, loop: 1))
        for stage in [quick, slow] {
            stage.connect(1)
            try stage.join("realtime:a", 1, config(#"{"limit":1}"#))
        }
        var relays: [Relay] = []
        for _ in 0..<40 {
            try publish(quick, bytes: 600)
            quick.hub.publishMessage(.text(Array("{}".utf8)), to: ChannelKey(topic: "realtime:a", isPrivate: false))
            _ = try quick.watch { _ in }
            relays += quick.relays
        }
        let heard = try slow.watch { hub in for relay in relays { hub.applyRelay(relay) } }
        #expect(heard.count == 80)
        try quick.tick(after: 1_000)
        #expect(store.figures.messages == 1)
    }

    /// A reply is followed by no more than the socket can have pending.
    @Test func tooMuchAtOnceIsSaid() throws {
        let store = HistoryStore(limits: limits)
        let stage = room(store)
        stage.connect(1)
        try stage.join("realtime:a", 1, config("true"))
        try publish(stage, bytes: 200, times: 8)
        stage.connect(2)
        let said = try stage.join("realtime:a", 2, config(#"{"after":"x"}"#))
        #expect(said.count == 1 + 3, "of 328 bytes each")
        let known = said[0].components(separatedBy: #""id":""#)[1].prefix { $0 != "." } + ".0"
        stage.connect(3)
        let other = try stage.join("realtime:a", 3, config(#"{"after":"\#(known)"}"#))
        #expect(other.count == 1 + 3 && other[0].contains("More was missed than is sent"))
        #expect(other[1].contains(".6\""), "the newest")
        try stage.join("realtime:b", 1, config("true"))
        try publish(stage, "realtime:b", bytes: 2_000)
        let more = try stage.join("realtime:b", 3, config(#"{"after":"x"}"#))
        #expect(more.count == 1, "its second is used up")
        stage.connect(4)
        #expect(try stage.join("realtime:b", 4, config(#"{"after":"x"}"#)).count == 2, "one message goes in any case")
    }
}
