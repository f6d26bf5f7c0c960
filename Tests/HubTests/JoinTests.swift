import Hub
import Testing
import Wire

/// wire-protocol A4 and A9.
@Suite struct JoinTests {
    private func refused(_ slot: Slot, _ ref: String, _ topic: String, _ reason: String, joinRef: String? = nil)
        -> String
    {
        #"\#(slot) ← [\#(joinRef ?? "null"),"\#(ref)","\#(topic)","phx_reply",{"status":"error","response":{"reason":"\#(reason)"}}]"#
    }

    // MARK: The reply

    @Test func repliesInBothVersions() throws {
        let stage = Stage()
        stage.connect(1)
        stage.connect(2, .v1)
        #expect(
            try stage.say(#"["6","7","realtime:room1","phx_join",{"config":{}}]"#, from: 1)
                == [#"1 ← ["6","7","realtime:room1","phx_reply",{"status":"ok","response":{"postgres_changes":[]}}]"#])
        #expect(
            try stage.joinV1("realtime:room1", 2, ref: "3")
                == [
                    #"2 ← {"topic":"realtime:room1","event":"phx_reply","payload":{"status":"ok","response":{"postgres_changes":[]}},"ref":"3"}"#
                ])
    }

    /// An odd payload takes the defaults and never keeps a client out.
    @Test(arguments: [
        #"{"config":{}}"#, #"{"config":null}"#, #"{"config":[]}"#, #"{"config":{"broadcast":7,"presence":[]}}"#,
        #"{"config":{"postgres_changes":null}}"#, #"{"config":{"postgres_changes":[]}}"#,
        #"{"config":{"postgres_changes":[null]}}"#,
        #"{"config":{"postgres_changes":{"a":1}}}"#, #"{"config":{"private":"no","presence":{"enabled":1}}}"#,
        #"{"config":7,"access_token":null}"#, #"{"config":7,"access_token":""}"#, #"{"config":7,"access_token":7}"#,
        #"{"config":7,"access_token":"sb_publishable_x"}"#,
        #"{"config":7,"user_token":"sb_secret_x","access_token":null}"#,
        #"{"config":{},"version":"realtime-swift/2.55"}"#,
    ])
    func oddPayloadsTakeDefaults(_ payload: String) throws {
        let stage = Stage()
        stage.connect(1)
        #expect(
            try stage.say(#"["6","7","realtime:a","phx_join",\#(payload)]"#, from: 1)
                == [#"1 ← ["6","7","realtime:a","phx_reply",{"status":"ok","response":{"postgres_changes":[]}}]"#])
    }

    @Test func theRefStandsInForAMissingJoinRef() throws {
        let stage = Stage()
        stage.connect(1)
        #expect(
            try stage.say(#"[null,"7","realtime:a","phx_join",{"config":{}}]"#, from: 1)
                == [#"1 ← ["7","7","realtime:a","phx_reply",{"status":"ok","response":{"postgres_changes":[]}}]"#])
    }

    // MARK: Topics

    @Test(arguments: ["phoenix", "", "room1", "realtime", "Realtime:a", "xrealtime:a", "realtime;a"])
    func topicsWithoutThePrefixAreUnmatched(_ topic: String) throws {
        let stage = Stage()
        stage.connect(1)
        #expect(try stage.join(topic, 1) == [refused(1, "1", topic, "unmatched topic")])
        #expect(stage.hub.channelCount == 0)
    }

    @Test func aTopicNeedsAName() throws {
        let stage = Stage()
        stage.connect(1)
        #expect(
            try stage.join("realtime:", 1)
                == [refused(1, "1", "realtime:", "TopicNameRequired: You must provide a topic name", joinRef: #""1""#)])
        #expect(stage.hub.channelCount == 0)
    }

    @Test func topicsAreToldApartByTheirBytes() throws {
        let stage = Stage()
        for slot in Slot(1)...3 { stage.connect(slot) }
        try stage.join("realtime:\u{E9}", 1)
        try stage.join("realtime:e\u{301}", 2)
        #expect(stage.hub.channelCount == 2)
        let said = try stage.watch {
            $0.publishMessage(.text(Array("{}".utf8)), to: ChannelKey(topic: "realtime:e\u{301}", isPrivate: false))
        }
        #expect(
            said.first.map { Array($0.utf8) } == Array("2 ⇐ [null,null,\"realtime:e\u{301}\",\"broadcast\",{}]".utf8))
        // A mark behind the colon belongs to the name.
        try stage.join("realtime:\u{301}x", 3, #"{"private":true}"#)
        #expect(try stage.decide(.decided([])).first?.hasSuffix("topic: \u{301}x\"}}]") == true)
        // One connection may hold both.
        try stage.join("realtime:\u{E9}", 2, ref: "5")
        #expect(stage.hub.channelCount == 2)
        try stage.disconnect(2)
        #expect(stage.hub.channelCount == 1)
    }

    // MARK: Twice

    @Test func aSecondJoinReplacesTheFirstWithoutAClose() throws {
        let stage = Stage()
        stage.connect(1)
        stage.connect(2)
        try stage.join("realtime:a", 1, ref: "1", #"{"broadcast":{"self":true},"presence":{"enabled":true}}"#)
        try stage.join("realtime:a", 2)
        try stage.say(#"["1","2","realtime:a","presence",{"event":"track","payload":{}}]"#, from: 1)
        // The old incarnation's presence goes, nothing is sent to it, and the reply is the first frame of the new one.
        #expect(
            try stage.join("realtime:a", 1, ref: "9")
                == [
                    "relay presence realtime:a +0 -1",
                    #"1 ← ["9","9","realtime:a","phx_reply",{"status":"ok","response":{"postgres_changes":[]}}]"#,
                ])
        let said = try stage.say(#"["1","3","realtime:a","broadcast",{}]"#, from: 2)
        #expect(said.first == #"1 ⇐ [null,null,"realtime:a","broadcast",{}]"#, "once, not twice")
        #expect(try stage.say(#"["9","4","realtime:a","broadcast",{}]"#, from: 1).first?.hasPrefix("2 ⇐") == true)
    }

    @Test func aRefusedSecondJoinEndsTheFirst() throws {
        let stage = Stage()
        stage.connect(1)
        try stage.join("realtime:a", 1)
        try stage.join("realtime:a", 1, ref: "2", #"{"private":true}"#)
        #expect(try stage.decide(.decided([])).count == 1)
        #expect(stage.hub.channelCount == 0)
        #expect(
            try stage.say(#"["1","3","realtime:a","broadcast",{}]"#, from: 1) == [
                refused(1, "3", "realtime:a", "unmatched topic")
            ])
    }

    // MARK: Leaving

    @Test func leaving() throws {
        let stage = Stage()
        stage.connect(1)
        stage.connect(2, .v1)
        try stage.join("realtime:a", 1, ref: "6")
        try stage.joinV1("realtime:a", 2, ref: "3")
        #expect(
            try stage.say(#"["6","7","realtime:a","phx_leave",{}]"#, from: 1)
                == [
                    #"1 ← ["6","7","realtime:a","phx_reply",{"status":"ok","response":{}}]"#,
                    #"1 ← ["6","6","realtime:a","phx_close",{}]"#,
                ])
        #expect(
            try stage.say(#"{"topic":"realtime:a","event":"phx_leave","payload":{},"ref":"4"}"#, from: 2)
                == [
                    #"2 ← {"topic":"realtime:a","event":"phx_reply","payload":{"status":"ok","response":{}},"ref":"4"}"#,
                    #"2 ← {"topic":"realtime:a","event":"phx_close","payload":{},"ref":"3"}"#,
                ])
        #expect(stage.hub.channelCount == 0)
    }

    @Test func leavingWhatWasNotJoined() throws {
        let stage = Stage()
        stage.connect(1)
        #expect(
            try stage.say(#"["6","7","realtime:a","phx_leave",{}]"#, from: 1)
                == [#"1 ← ["6","7","realtime:a","phx_reply",{"status":"ok","response":{}}]"#])
    }

    @Test func aStaleLeaveLeavesTheNewIncarnationAlone() throws {
        let stage = Stage()
        stage.connect(1)
        try stage.join("realtime:a", 1, ref: "1")
        try stage.join("realtime:a", 1, ref: "2")
        #expect(
            try stage.say(#"["1","3","realtime:a","phx_leave",{}]"#, from: 1)
                == [#"1 ← ["1","3","realtime:a","phx_reply",{"status":"ok","response":{}}]"#])
        #expect(stage.hub.channelCount == 1)
        #expect(try stage.say(#"[null,"4","realtime:a","phx_leave",{}]"#, from: 1).count == 2)
        #expect(stage.hub.channelCount == 0)
    }

    // MARK: Tokens

    @Test(arguments: [
        ("bad", "MalformedJWT: The token provided is not a valid JWT"),
        ("good anon 900", "InvalidJWTToken: Token has expired 100 seconds ago"),
        ("good anon 1000", "InvalidJWTToken: Token has expired 0 seconds ago"),
    ])
    func refusesBadTokens(_ token: String, _ reason: String) throws {
        let stage = Stage()
        stage.connect(1)
        for key in ["access_token", "user_token"] {
            #expect(
                try stage.say(#"["1","2","realtime:a","phx_join",{"config":{},"\#(key)":"\#(token)"}]"#, from: 1)
                    == [refused(1, "2", "realtime:a", reason, joinRef: #""1""#)])
        }
        #expect(stage.hub.channelCount == 0)
    }

    @Test func theUserTokenWins() throws {
        let stage = Stage()
        stage.connect(1)
        let both = #"{"config":{},"user_token":"good anon 2000","access_token":"bad"}"#
        #expect(try stage.say(#"["1","2","realtime:a","phx_join",\#(both)]"#, from: 1).first?.contains("ok") == true)
    }

    @Test func theDoorsTokenServesUntilItExpires() throws {
        let stage = Stage()
        stage.connect(1, expiresAt: 1060)
        #expect(try stage.join("realtime:a", 1).first?.contains(#""ok""#) == true)
        stage.now = stage.now.advanced(by: 61_000)
        #expect(
            try stage.join("realtime:b", 1)
                == [refused(1, "1", "realtime:b", "InvalidJWTToken: Token has expired 1 seconds ago", joinRef: #""1""#)]
        )
    }

    // MARK: Private

    @Test(arguments: ["true", #""true""#, #""TRUE""#]) func privateIsWhatTheFlagSays(_ flag: String) throws {
        let stage = Stage()
        stage.connect(1)
        #expect(try stage.join("realtime:a", 1, "{\"private\":\(flag)}") == ["authorize anon read a"])
        #expect(
            try stage.decide(.decided([]))
                == [
                    refused(
                        1, "1", "realtime:a",
                        "Unauthorized: You do not have permissions to read from this Channel topic: a",
                        joinRef: #""1""#)
                ])
        #expect(stage.hub.channelCount == 0)
    }

    @Test func aPrivateAndAPublicChannelAreTwoRooms() throws {
        let stage = Stage()
        for slot in Slot(1)...4 { stage.connect(slot) }
        try stage.joinPrivate("realtime:a", 1, #"{"presence":{"enabled":true}}"#)
        try stage.join("realtime:a", 2, #"{"private":false,"presence":{"enabled":true}}"#)
        try stage.joinPrivate("realtime:a", 3)
        try stage.join("realtime:a", 4)
        #expect(stage.hub.channelCount == 2)
        try stage.say(#"["1","2","realtime:a","broadcast",{}]"#, from: 1)
        #expect(
            try stage.decide(.decided(.broadcast))
                == [#"3 ⇐ [null,null,"realtime:a","broadcast",{}]"#, "relay broadcast realtime:a private"])
        #expect(
            try stage.say(#"["1","2","realtime:a","broadcast",{}]"#, from: 4)
                == [#"2 ⇐ [null,null,"realtime:a","broadcast",{}]"#, "relay broadcast realtime:a"])
        try stage.say(#"["1","2","realtime:a","presence",{"event":"track","payload":{}}]"#, from: 3)
        #expect(try stage.decide(.decided(.presence)).contains { $0.hasPrefix("1,3 ⇐") })
    }

    @Test func onlyPrivateWhereConfigured() throws {
        var limits = HubLimits()
        limits.privateOnly = true
        let stage = Stage(limits: limits)
        stage.connect(1)
        #expect(
            try stage.join("realtime:a", 1)
                == [
                    refused(
                        1, "1", "realtime:a", "PrivateOnly: This project only allows private channels", joinRef: #""1""#
                    )
                ])
        #expect(try stage.joinPrivate("realtime:a", 1).first?.contains(#""ok""#) == true)
    }

    // MARK: Limits

    private static let tooMany =
        "ChannelRateLimitReached: Too many channels: one socket may join 100 (limits.channels_per_connection); leave one first"

    @Test func aHundredChannelsPerConnection() throws {
        let stage = Stage()
        stage.connect(1)
        stage.connect(2)
        for number in 1...100 { try stage.join("realtime:\(number)", 1) }
        #expect(
            try stage.join("realtime:101", 1)
                == [refused(1, "1", "realtime:101", Self.tooMany, joinRef: #""1""#)])
        #expect(stage.hub.channelCount == 100)
        #expect(
            try stage.join("realtime:100", 1, ref: "2").first?.contains(#""ok""#) == true, "replacing one is no more")
        #expect(try stage.join("realtime:101", 2).first?.contains(#""ok""#) == true)
        try stage.say(#"["2","3","realtime:100","phx_leave",{}]"#, from: 1)
        #expect(try stage.join("realtime:101", 1).first?.contains(#""ok""#) == true)
        try stage.disconnect(1)
        #expect(stage.hub.channelCount == 1)
        try stage.disconnect(2)
        #expect(stage.hub.channelCount == 0)
        #expect(stage.hub.connectionCount == 0)
    }

    // MARK: replication_ready

    private static let ready = #"{"broadcast":{"replication_ready":true}}"#
    private static let established =
        #"["1",null,"realtime:a","system",{"extension":"system","status":"ok","message":"Replication connection established","channel":"a"}]"#

    @Test func replicationReadyComesAtOnceWhereChangesFlow() throws {
        let stage = Stage()
        stage.connect(1)
        #expect(try stage.watch { $0.feedChanged(isReady: true) }.isEmpty)
        #expect(try stage.join("realtime:a", 1, Self.ready).dropFirst() == ["1 ← \(Self.established)"])
    }

    @Test func replicationReadyComesOnceWhenChangesFlow() throws {
        let stage = Stage()
        for slot in Slot(1)...3 { stage.connect(slot) }
        #expect(try stage.join("realtime:a", 1, Self.ready).count == 1)
        // Again and again: still one message.
        #expect(try stage.join("realtime:a", 1, Self.ready).count == 1)
        try stage.join("realtime:a", 2)
        // Who left is not told, nor is who came after on the same slot.
        try stage.join("realtime:a", 3, Self.ready)
        try stage.disconnect(3)
        stage.connect(3)
        try stage.join("realtime:a", 3)
        #expect(try stage.watch { $0.feedChanged(isReady: false) }.isEmpty)
        #expect(try stage.watch { $0.feedChanged(isReady: true) } == ["1 ← \(Self.established)"])
        #expect(try stage.watch { $0.feedChanged(isReady: true) }.isEmpty)
        #expect(try stage.watch { $0.feedChanged(isReady: false) }.isEmpty)
        #expect(try stage.watch { $0.feedChanged(isReady: true) }.isEmpty)
    }
}
