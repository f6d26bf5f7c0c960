import Hub
import TestSupport
import Testing
import Wire

/// Which loops are woken for a message.
@Suite struct ChannelFilterTests {
    private let filter: ChannelFilter
    private let stage: Stage

    init() { (stage, filter) = Self.filtered() }

    private static func filtered() -> (Stage, ChannelFilter) {
        let filter = ChannelFilter()
        let hub = Hub(
            loop: 0, verifier: TestVerifier(), random: SeededGenerator(seed: 1), presence: .plain, filter: filter)
        return (Stage(hub: hub), filter)
    }

    /// Topics of which no two share a place in the filter: hashes are others in each process, and one run in forty had two.
    private func topicsApart(_ count: Int) throws -> [String] {
        let (stage, filter) = Self.filtered()
        stage.connect(1)
        var topics: [String] = []
        for topic in (1...).lazy.map({ "realtime:\($0)" }) where !filter.mayHave(key(topic)) {
            try stage.join(topic, 1, ref: "\(topics.count)")
            topics.append(topic)
            if topics.count == count { break }
        }
        return topics
    }

    private func key(_ topic: String) -> ChannelKey { ChannelKey(topic: topic, isPrivate: false) }

    private func broadcast(_ topic: String) -> Relay {
        .broadcast(key(topic), .text(Array(#"{"type":"broadcast","event":"e"}"#.utf8)))
    }

    @Test func aChannelIsThereFromTheFirstJoinToTheLastLeave() throws {
        for slot in [1, 2] as [Slot] { stage.connect(slot) }
        #expect(!filter.mayHave(key("realtime:a")) && !filter.mayConcern(broadcast("realtime:a")))
        try stage.join("realtime:a", 1)
        try stage.join("realtime:a", 2)
        #expect(filter.mayConcern(broadcast("realtime:a")) && !filter.mayConcern(broadcast("realtime:b")))
        try stage.say(#"["1","2","realtime:a","phx_leave",{}]"#, from: 1)
        #expect(filter.mayHave(key("realtime:a")))
        try stage.disconnect(2)
        #expect(!filter.mayHave(key("realtime:a")))
    }

    /// Whoever joins later has to see who is present, so that is kept on every loop.
    @Test func whatMakesAChannelConcernsAll() throws {
        #expect(filter.mayConcern(.missing))
        #expect(filter.mayConcern(.presence(key("realtime:a"), PresenceDiff())))
        #expect(!filter.mayConcern(.keeping(key("realtime:a"))), "it is for other hubs")
    }

    @Test func howeverTheyComeAndGoItHasTheChannelsThatAreThere() throws {
        let topics = try topicsApart(40)
        var random = SeededGenerator(seed: 7)
        var joined: [Slot: Set<Int>] = [:]
        for step in 0..<3000 {
            let slot = Slot.random(in: 1...20, using: &random)
            let number = Int.random(in: 0..<40, using: &random)
            if joined[slot] == nil {
                stage.connect(slot)
                joined[slot] = []
            } else if number == 0 {
                try stage.disconnect(slot)
                joined[slot] = nil
            } else if joined[slot]?.remove(number) != nil {
                try stage.say(#"["\#(number)","x\#(step)","\#(topics[number])","phx_leave",{}]"#, from: slot)
            } else {
                try stage.join(topics[number], slot, ref: "\(number)")
                joined[slot]?.insert(number)
            }
            let there = joined.values.reduce(into: Set<Int>()) { $0.formUnion($1) }
            for number in 1..<40 { #expect(filter.mayHave(key(topics[number])) == there.contains(number)) }
        }
    }
}
