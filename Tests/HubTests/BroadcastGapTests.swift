import Hub
import Testing
import Wire

/// Messages of the database that are gone, and who is told.
@Suite struct BroadcastGapTests {
    private static let payload =
        #"{"extension":"broadcast","status":"ok","message":"Messages from the database may be missing: "#
        + #"load what you show again.","channel":"room:1"}"#

    private func gap(_ hub: Hub, _ pattern: String, isPrivate: Bool) {
        hub.deliverEvent(.broadcastGap([ChannelPattern(TopicPattern(pattern), isPrivate: isPrivate)]))
    }

    @Test func membersOfBothVersionsAndWithHistoryAreToldOnceAndNobodyElse() throws {
        let stage = Stage()
        for slot in Slot(1)...3 { stage.connect(slot, slot == 2 ? .v1 : .v2) }
        try stage.join("realtime:room:1", 1)
        try stage.joinV1("realtime:room:1", 2)
        try stage.join("realtime:room:1", 3, #"{"broadcast":{"history":true}}"#)
        try stage.join("realtime:lobby", 1, ref: "2")
        #expect(
            try stage.watch { gap($0, "room:*", isPrivate: false) }.sorted() == [
                #"1 ← ["1",null,"realtime:room:1","system",\#(Self.payload)]"#,
                #"2 ← {"topic":"realtime:room:1","event":"system","payload":\#(Self.payload),"ref":null}"#,
                #"3 ← ["1",null,"realtime:room:1","system",\#(Self.payload)]"#,
            ])
        #expect(try stage.watch { gap($0, "room:*", isPrivate: true) } == [], "a private channel is another one")
    }

    @Test func aMessageToNobodyDoesNothing() throws {
        let stage = Stage()
        stage.connect(1)
        try stage.join("realtime:room:1", 1)
        let key = ChannelKey(topic: "realtime:room:2", isPrivate: true)
        let message = DatabaseBroadcast(key: key, id: "1", broadcast: .text(Array("{}".utf8)))
        #expect(try stage.watch { $0.deliverEvent(.broadcast(message)) } == [])
        #expect(stage.hub.channelCount == 1)
    }

    @Test func whoMayNotHearThePrivateChannelYetLacksNothing() throws {
        let stage = Stage()
        for slot in Slot(1)...3 { stage.connect(slot) }
        try stage.joinPrivate("realtime:room:1", 1)
        try stage.joinPrivate("realtime:room:1", 2, reading: .presence)
        try stage.join("realtime:room:1", 3, #"{"private":true}"#)
        let told = try stage.watch { gap($0, "room:*", isPrivate: true) }
        #expect(told == [#"1 ← ["1",null,"realtime:room:1","system",\#(Self.payload)]"#])
    }
}
