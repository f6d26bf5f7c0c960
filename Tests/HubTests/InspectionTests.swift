import Hub
import Testing

/// What an operator is told of channels and connections.
@Suite struct InspectionTests {
    private func stage() throws -> Stage {
        let stage = Stage()
        for slot in [1, 2, 3] as [Slot] { stage.connect(slot, subject: slot == 3 ? "bob" : "ada") }
        for slot in [1, 2, 3] as [Slot] { try stage.join("realtime:a", slot) }
        try stage.join("realtime:b", 3)
        return stage
    }

    private func wave(_ stage: Stage, _ topic: String = "realtime:a", payload: String = "{}") throws {
        try stage.say(
            #"["1","2","\#(topic)","broadcast",{"type":"broadcast","event":"wave","payload":\#(payload)}]"#,
            from: topic == "realtime:a" ? 1 : 3)
    }

    @Test func theBusiestChannelsAreCountedFromLookToLook() throws {
        let stage = try stage()
        _ = stage.hub.busiestChannels(limit: 10)
        for _ in 0..<5 { try wave(stage) }
        let loads = stage.hub.busiestChannels(limit: 10)
        #expect(loads.map(\.key.topic) == ["realtime:a", "realtime:b"])
        #expect(loads.map(\.sockets) == [3, 1])
        #expect(loads.map(\.messages) == [5, 0])
        #expect(loads.map(\.deliveries) == [10, 0])
        #expect(stage.hub.busiestChannels(limit: 10).map(\.messages) == [0, 0])
        #expect(stage.hub.busiestChannels(limit: 1).map(\.key.topic) == ["realtime:a"])
    }

    @Test func whatLoopsSayOfAChannelIsJoined() throws {
        let (one, other) = (try stage(), try stage())
        for stage in [one, other] { try wave(stage) }
        let loads = ChannelLoad.mergeLoads(
            one.hub.busiestChannels(limit: 9) + other.hub.busiestChannels(limit: 9), limit: 1)
        #expect(loads.map(\.key.topic) == ["realtime:a"])
        #expect(loads.map(\.sockets) == [6])
        #expect(loads.map(\.messages) == [1])
        #expect(loads.map(\.deliveries) == [4])
    }

    @Test func eventsAreNotedWhileSomebodyLooks() throws {
        let stage = try stage()
        try wave(stage)
        #expect(stage.hub.channels(named: "realtime:a", limit: 9).first?.events.isEmpty == true)
        try wave(stage, payload: #"{"n":1,"token":"open sesame"}"#)
        let view = try #require(stage.hub.channels(named: "realtime:a", limit: 9).first)
        #expect(view.events.map(\.event) == ["broadcast"])
        #expect(view.events.map(\.receivers) == [2])
        #expect(view.events[0].excerpt.contains(#""n":1"#))
        #expect(!view.events[0].excerpt.contains("sesame"))
        stage.now = stage.now.advanced(by: 6000)
        try wave(stage)
        #expect(stage.hub.channels(named: "realtime:a", limit: 9).first?.events.isEmpty == true)
    }

    @Test func theMembersOfAChannel() throws {
        let stage = try stage()
        try stage.say(#"["1","2","realtime:a","presence",{"event":"track","payload":{"mood":"fine"}}]"#, from: 2)
        let view = try #require(stage.hub.channels(named: "realtime:a", limit: 9).first)
        #expect(Set(view.members.map(\.slot)) == [1, 2, 3])
        #expect(view.members.filter(\.isPresent).map(\.slot) == [2])
        #expect(view.presentCount == 1)
        #expect(view.present.map(\.excerpt) == [#"{"mood":"fine"}"#])
        #expect(stage.hub.channels(named: "realtime:a", limit: 2).first?.members.count == 2)
        #expect(stage.hub.channels(named: "realtime:z", limit: 9).isEmpty)
    }

    @Test func aConnection() throws {
        let stage = try stage()
        let view = try #require(stage.hub.connection(at: 3))
        #expect(view.user == "bob")
        #expect(view.memberships.map(\.key.topic) == ["realtime:a", "realtime:b"])
        #expect(view.memberships.map(\.isJoined) == [true, true])
        for nobody in [0, 99] as [Slot] { #expect(stage.hub.connection(at: nobody)?.role == nil) }
    }

    @Test func theConnectionsOfAUser() throws {
        let stage = try stage()
        #expect(stage.hub.slots(ofUser: "ada") == [1, 2])
        try stage.disconnect(1)
        #expect(stage.hub.slots(ofUser: "ada") == [2])
        #expect(stage.hub.slots(ofUser: "nobody").isEmpty)
    }
}

@Suite struct RingTests {
    @Test(arguments: 1...7, 0...20) func keepsTheLastOnes(capacity: Int, count: Int) {
        var ring = Ring<Int>(capacity: capacity)
        for number in 0..<count { ring.append(number) }
        #expect(ring.elements == Array((0..<count).suffix(capacity)))
        #expect(ring.count == min(count, capacity))
        #expect(ring.last == (0..<count).last)
    }
}
