import Hub
import Testing
import Wire

/// wire-protocol A7, and the conversions of A2.
@Suite struct BroadcastTests {
    /// Slots 1 and 2 speak version 2, slots 3 and 4 version 1; all are in `realtime:a`.
    private func room(_ config: String = "{}", limits: HubLimits = HubLimits()) throws -> Stage {
        let stage = Stage(limits: limits)
        for slot in Slot(1)...2 {
            stage.connect(slot)
            try stage.join("realtime:a", slot, config)
        }
        for slot in Slot(3)...4 {
            stage.connect(slot, .v1)
            try stage.joinV1("realtime:a", slot, config)
        }
        return stage
    }

    private static let body = #"{"type":"broadcast","event":"cursor","payload":{"x": 1.0},"extra":[1, 2]}"#

    private func kind3(_ payload: [UInt8], ref: String = "9", isJSON: Bool = true) -> [UInt8] {
        [3, 1, UInt8(ref.utf8.count), 10, 6, 0, isJSON ? 1 : 0] + Array("1\(ref)realtime:acursor".utf8) + payload
    }

    // MARK: Text

    @Test func textReachesEverybodyElseAsItIs() throws {
        let stage = try room()
        let expected = [
            #"3,4 ⇐ {"topic":"realtime:a","event":"broadcast","payload":\#(Self.body),"ref":null}"#,
            #"2 ⇐ [null,null,"realtime:a","broadcast",\#(Self.body)]"#, "relay broadcast realtime:a",
        ]
        #expect(try stage.say(#"["1","9","realtime:a","broadcast",\#(Self.body)]"#, from: 1) == expected)
        #expect(
            try stage.say(#"{"topic":"realtime:a","event":"broadcast","payload":\#(Self.body),"ref":"9"}"#, from: 3)
                == [
                    #"4 ⇐ {"topic":"realtime:a","event":"broadcast","payload":\#(Self.body),"ref":null}"#,
                    #"1,2 ⇐ [null,null,"realtime:a","broadcast",\#(Self.body)]"#, "relay broadcast realtime:a",
                ])
    }

    @Test func withoutAJoinRefToo() throws {
        let stage = try room()
        #expect(try stage.say(#"[null,null,"realtime:a","broadcast",{}]"#, from: 1).count == 3)
    }

    /// What a client sent for an earlier incarnation of its channel is nobody's to hear.
    @Test func ofAnEarlierJoinNothingIsTaken() throws {
        let stage = try room(#"{"presence":{"enabled":true}}"#)
        try stage.join("realtime:a", 1, ref: "7")
        for (event, payload) in [
            ("broadcast", "{}"), ("presence", #"{"event":"track","payload":{}}"#),
            ("app_state", #"{"state":"active"}"#),
            ("access_token", #"{"access_token":"bad"}"#),
        ] {
            #expect(try stage.say(#"["1","8","realtime:a","\#(event)",\#(payload)]"#, from: 1).isEmpty, "\(event)")
        }
        #expect(try stage.say(kind3(Array("{}".utf8)), from: 1).isEmpty)
        #expect(stage.hub.counters.staleMessages == 5)
        #expect(try stage.say(#"["7","8","realtime:a","broadcast",{}]"#, from: 1).count == 3)
        #expect(try stage.say(#"[null,"8","realtime:a","broadcast",{}]"#, from: 1).count == 3)
    }

    @Test func aNumberIsTheSameRefAsItsText() throws {
        let stage = try room()
        try stage.say(#"[1,1,"realtime:a","phx_join",{}]"#, from: 1)
        #expect(try stage.say(kind3(Array("{}".utf8)), from: 1).count == 3)
        #expect(try stage.say(#"["1",2,"realtime:a","broadcast",{}]"#, from: 1).count == 3)
        #expect(try stage.say(#"[1,2,"realtime:a","broadcast",{}]"#, from: 1).count == 3)
    }

    @Test func selfEchoesToTheSender() throws {
        let stage = try room(#"{"broadcast":{"self":true}}"#)
        #expect(try stage.say(#"["1","9","realtime:a","broadcast",{}]"#, from: 1)[1].hasPrefix("1,2 ⇐"))
        #expect(try stage.say(kind3(Array("{}".utf8)), from: 1)[1].hasPrefix("1,2 ⇐"))
    }

    @Test func ackRepliesAfterHandingOver() throws {
        let stage = try room(#"{"broadcast":{"ack":"true"}}"#)
        let ok = #"["1","9","realtime:a","phx_reply",{"status":"ok","response":{}}]"#
        #expect(try stage.say(#"["1","9","realtime:a","broadcast",{}]"#, from: 1).last == "1 ← \(ok)")
        #expect(try stage.say(kind3(Array("{}".utf8)), from: 1).last == "1 ← \(ok)")
        #expect(
            try stage.say(#"{"topic":"realtime:a","event":"broadcast","payload":{},"ref":"9"}"#, from: 3).last
                == #"3 ← {"topic":"realtime:a","event":"phx_reply","payload":{"status":"ok","response":{}},"ref":"9"}"#)
        // Nobody could match an answer without a ref.
        #expect(try stage.say(#"["1",null,"realtime:a","broadcast",{}]"#, from: 1).last == "relay broadcast realtime:a")
    }

    /// supabase/realtime 2.174 sends on what is no object as it is.
    @Test(arguments: ["[]", "null", #""text""#, "7"]) func aPayloadThatIsNoObjectIsPassedOn(_ payload: String) throws {
        let stage = try room(#"{"broadcast":{"ack":true}}"#)
        #expect(
            try stage.say(#"["1","9","realtime:a","broadcast",\#(payload)]"#, from: 1)
                == [
                    #"3,4 ⇐ {"topic":"realtime:a","event":"broadcast","payload":\#(payload),"ref":null}"#,
                    #"2 ⇐ [null,null,"realtime:a","broadcast",\#(payload)]"#, "relay broadcast realtime:a",
                    #"1 ← ["1","9","realtime:a","phx_reply",{"status":"ok","response":{}}]"#,
                ])
    }

    @Test func withHistoryToo() throws {
        let stage = Stage(history: HistoryStore(limits: HubLimits(), window: 60))
        stage.connect(1)
        stage.connect(2)
        try stage.join("realtime:a", 1, #"{"broadcast":{"history":true}}"#)
        try stage.join("realtime:a", 2)
        let told = try stage.say(#"["1","9","realtime:a","broadcast",[7]]"#, from: 2)
        #expect(told.contains { $0.hasPrefix("1 ") && $0.hasSuffix(#""broadcast",[7]]"#) }, "\(told)")
    }

    // MARK: Binary

    @Test func kind3BecomesKind4OrText() throws {
        let stage = try room()
        #expect(
            try stage.say(kind3(Array(#"{"x": 1.0}"#.utf8)), from: 1)
                == [
                    #"3,4 ⇐ {"topic":"realtime:a","event":"broadcast","payload":{"event":"cursor","payload":{"x": 1.0},"type":"broadcast"},"ref":null}"#,
                    #"2 ⇐ #4 realtime:a cursor json {"x": 1.0}"#,
                    "relay broadcast realtime:a",
                ])
    }

    @Test func rawBytesReachOnlyVersion2() throws {
        let stage = try room()
        #expect(
            try stage.say(kind3([0, 255, 7], isJSON: false), from: 1)
                == ["2 ⇐ #4 realtime:a cursor raw [0, 255, 7]", "relay broadcast realtime:a"])
    }

    @Test func whatIsCalledJSONAndIsNotReachesOnlyVersion2() throws {
        let stage = try room()
        #expect(
            try stage.say(kind3(Array("{oops".utf8)), from: 1)
                == ["2 ⇐ #4 realtime:a cursor json {oops", "relay broadcast realtime:a"])
    }

    // MARK: Limits

    @Test func tooLargeIsAnErrorAndGoesNowhere() throws {
        var limits = HubLimits()
        limits.payloadBytes = 20
        let stage = try room(#"{"broadcast":{"ack":true}}"#, limits: limits)
        let refusal =
            #"1 ← ["1","9","realtime:a","phx_reply",{"status":"error","response":{"error":"payload_size_exceeded","reason":"payload_size_exceeded: The payload is too large: it may have 20 bytes (limits.payload_bytes); send less"}}]"#
        let (fits, exceeds) = (#"{"a":"xxxxxxxxxxxx"}"#, #"{"a":"xxxxxxxxxxxxx"}"#)
        #expect(fits.utf8.count == 20)
        #expect(try stage.say(#"["1","9","realtime:a","broadcast",\#(fits)]"#, from: 1).count == 4)
        #expect(try stage.say(#"["1","9","realtime:a","broadcast",\#(exceeds)]"#, from: 1) == [refusal])
        #expect(try stage.say(kind3(Array(fits.utf8)), from: 1).count == 4)
        #expect(try stage.say(kind3(Array(exceeds.utf8)), from: 1) == [refusal])
        // The code is one of broadcasts.
        #expect(
            try stage.say(#"["1","9","realtime:a","presence",{"event":"track","payload":\#(exceeds)}]"#, from: 1) == [
                refusal.replacing(#""error":"payload_size_exceeded","#, with: "")
            ])
        #expect(stage.hub.refused == [.payloadBytes: 3])
        let silent = try room(limits: limits)
        #expect(try silent.say(#"["1","9","realtime:a","broadcast",\#(exceeds)]"#, from: 1).isEmpty)
        #expect(try silent.say(kind3(Array(exceeds.utf8)), from: 1).isEmpty)
        #expect(silent.hub.refused == [.payloadBytes: 2])
    }

    @Test func theDefaultLimitIsTheOriginals() {
        #expect(HubLimits().payloadBytes == 3_000_000)
        #expect(HubLimits().channelsPerConnection == 100)
    }

    // MARK: From elsewhere

    @Test func publishReachesEverybody() throws {
        let stage = try room()
        let key = ChannelKey(topic: "realtime:a", isPrivate: false)
        #expect(
            try stage.watch { $0.publishMessage(.text(Array("{}".utf8)), to: key) }
                == [
                    #"3,4 ⇐ {"topic":"realtime:a","event":"broadcast","payload":{},"ref":null}"#,
                    #"1,2 ⇐ [null,null,"realtime:a","broadcast",{}]"#, "relay broadcast realtime:a",
                ])
        let nowhere = ChannelKey(topic: "realtime:b", isPrivate: false)
        #expect(
            try stage.watch { $0.publishMessage(.text(Array("{}".utf8)), to: nowhere) } == [
                "relay broadcast realtime:b"
            ])
        #expect(stage.hub.channelCount == 1)
    }

    @Test func relayedBroadcastsReachTheOtherLoopOnce() throws {
        let (one, other) = (try room(), try room())
        let stranger = Stage(loop: 2)
        for (message, count) in [(kind3(Array("{}".utf8)), 2), (kind3([1], isJSON: false), 1)] {
            try one.say(message, from: 1)
            let relay = try #require(one.relays.first)
            let said = try other.watch { $0.applyRelay(relay) }
            #expect(said.count == count, "and it is not relayed again")
            #expect(said.last?.hasPrefix("1,2 ⇐ #4 realtime:a cursor") == true)
            #expect(try stranger.watch { $0.applyRelay(relay) }.isEmpty)
        }
        #expect(stranger.hub.channelCount == 0)
    }

    @Test func whoLeftHearsNothing() throws {
        let stage = try room()
        try stage.say(#"["1","5","realtime:a","phx_leave",{}]"#, from: 2)
        try stage.disconnect(3)
        #expect(
            try stage.say(#"["1","9","realtime:a","broadcast",{}]"#, from: 1)
                == [
                    #"4 ⇐ {"topic":"realtime:a","event":"broadcast","payload":{},"ref":null}"#,
                    "relay broadcast realtime:a",
                ])
    }
}
