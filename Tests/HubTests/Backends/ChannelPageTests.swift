import Hub
import TestSupport
import Testing

/// The list of channels, page by page, over several loops.
@Suite struct ChannelPageTests {
    private func page(_ stages: [Stage], prefix: String = "realtime:", after: ChannelKey? = nil, limit: Int)
        -> ChannelPage
    {
        ChannelPage.mergePages(
            stages.map { $0.hub.channelPage(prefix: prefix, after: after, limit: limit) }, limit: limit)
    }

    private func all(_ stages: [Stage], prefix: String = "realtime:", limit: Int) -> [ChannelCount] {
        var (channels, after): ([ChannelCount], ChannelKey?) = ([], nil)
        for _ in 0..<1000 {
            let page = page(stages, prefix: prefix, after: after, limit: limit)
            #expect(page.channels.count <= limit)
            channels += page.channels
            guard page.isCut else { return channels }
            after = page.channels.last?.key
        }
        Issue.record("the pages do not end")
        return channels
    }

    @Test(arguments: [1, 2, 7, 500]) func pagesTogetherAreTheWholeListInOrder(_ limit: Int) throws {
        var random = SeededGenerator(seed: UInt64(limit))
        let stages = (0..<3).map { Stage(loop: $0) }
        var expected: [String: Int] = [:]
        for slot in 0..<60 as Range<Slot> {
            let stage = try #require(stages.randomElement(using: &random))
            stage.connect(slot)
            for (ref, number) in Set((0..<4).map { _ in Int.random(in: 0..<40, using: &random) }).sorted().enumerated()
            {
                let topic = "realtime:\(number % 3 == 0 ? "räume" : "room")\(number)"
                try stage.join(topic, slot, ref: String(ref + 1))
                expected[topic, default: 0] += 1
            }
        }
        let channels = all(stages, limit: limit)
        #expect(channels.map(\.key.topic) == expected.keys.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) })
        #expect(channels.map(\.connections) == channels.map { expected[$0.key.topic] ?? 0 })
        let rooms = all(stages, prefix: "realtime:room1", limit: limit).map(\.key.topic)
        #expect(rooms == channels.map(\.key.topic).filter { $0.hasPrefix("realtime:room1") })
    }

    @Test func aPageEndsWhereOneOfSeveralKnowsNoMore() {
        func count(_ name: String, _ connections: Int = 1) -> ChannelCount {
            ChannelCount(key: ChannelKey(topic: name, isPrivate: false), connections: connections)
        }
        let one = ChannelPage(channels: [count("a"), count("b")], isCut: true)
        let other = ChannelPage(channels: [count("b"), count("c"), count("d")])
        let page = ChannelPage.mergePages([one, other], limit: 10)
        #expect(page == ChannelPage(channels: [count("a"), count("b", 2)], isCut: true))
    }

    @Test func aPrivateChannelIsBehindThePublicOneOfItsName() throws {
        let stage = Stage()
        for slot in [1, 2] as [Slot] { stage.connect(slot) }
        try stage.joinPrivate("realtime:a", 1)
        try stage.join("realtime:a", 2)
        #expect(all([stage], limit: 1).map(\.key.isPrivate) == [false, true])
    }

    @Test func thosePresentAndTypingAreCounted() throws {
        let stage = Stage()
        for slot in [1, 2] as [Slot] { stage.connect(slot, subject: "u\(slot)") }
        for slot in [1, 2] as [Slot] { try stage.join("realtime:a", slot, #"{"presence":{"enabled":true}}"#) }
        try stage.say(
            #"["1","2","realtime:a","presence",{"type":"presence","event":"track","payload":{"n":1}}]"#, from: 1)
        try stage.say(
            #"["1","3","realtime:a","broadcast",{"type":"broadcast","event":"typing","payload":{"typing":true}}]"#,
            from: 2)
        let key = ChannelKey(topic: "realtime:a", isPrivate: false)
        #expect(stage.hub.count(of: key) == ChannelCount(key: key, connections: 2, members: 1, typing: 1))
        #expect(stage.hub.typists(in: key, limit: 9).map(\.user) == ["u2"])
        #expect(stage.hub.typists(in: key, limit: 0).isEmpty)
        let nobody = ChannelKey(topic: "realtime:b", isPrivate: false)
        #expect(stage.hub.count(of: nobody) == ChannelCount(key: nobody))
    }

    @Test func aTopicThatFitsNoCursorIsOnlyCounted() throws {
        let stage = Stage()
        stage.connect(1)
        try stage.join("realtime:" + String(repeating: "x", count: 2000), 1)
        let page = page([stage], limit: 10)
        #expect(page.channels.isEmpty && page.unlisted == 1 && !page.isCut)
    }
}
