import Hub
import Testing
import Wire

/// `config.broadcast.replay` (wire-protocol B).
@Suite struct ReplayTests {
    private static let config = #"{"private":true,"broadcast":{"replay":{"since":5,"limit":3}}}"#
    private static let secret = ChannelKey(topic: "realtime:a", isPrivate: true)

    private func refused(_ config: String, _ reason: String) throws {
        let stage = Stage()
        stage.connect(1)
        #expect(
            try stage.join("realtime:a", 1, config)
                == [
                    #"1 ← ["1","1","realtime:a","phx_reply",{"status":"error","response":{"reason":"UnableToReplayMessages: \#(reason)"}}]"#
                ])
        #expect(stage.hub.channelCount == 0)
    }

    private func message(_ id: String, raw: Bool = false) -> ReplayedMessage {
        ReplayedMessage(id: id, event: "e", body: raw ? .binary([7]) : .json(Array(#"{"n":1}"#.utf8)))
    }

    private func live(_ id: String) -> FeedEvent {
        let payload = Array(#"{"id":"\#(id)"}"#.utf8)
        let user = UserBroadcast(event: "e", encoding: .json, payload: payload[...], metadata: nil)
        return .broadcast(DatabaseBroadcast(key: Self.secret, id: id, broadcast: .user(user)))
    }

    private func waiting(limits: HubLimits = HubLimits(), _ version: ProtocolVersion = .v2) throws -> (
        Stage, AuthorizationID
    ) {
        let stage = Stage(limits: limits)
        stage.connect(1, version)
        _ =
            version == .v2
            ? try stage.join("realtime:a", 1, Self.config) : try stage.joinV1("realtime:a", 1, Self.config)
        return (stage, try #require(stage.asked.first))
    }

    // MARK: Asking

    @Test(arguments: [#"{"since":5}"#, "7", "{}", #"{"since":"x"}"#]) func notInPublicChannels(_ replay: String) throws
    {
        try refused("{\"broadcast\":{\"replay\":\(replay)}}", "Replay is not allowed for public channels")
    }

    @Test(arguments: [
        "7", "true", "[]", #"{"since":"5"}"#, #"{"since":1.5}"#, #"{"since":5,"limit":"3"}"#,
        #"{"since":5,"limit":{}}"#, #"{"since":253402300800000}"#, #"{"since":-62167219200001}"#,
        #"{"since":99999999999999999999}"#,
    ])
    func badParamsAreSaidToBeBad(_ replay: String) throws {
        try refused("{\"private\":true,\"broadcast\":{\"replay\":\(replay)}}", "Replay params are not valid")
    }

    @Test(arguments: [
        ("", 25), (#","limit":null"#, 25), (#","limit":1"#, 1), (#","limit":25"#, 25), (#","limit":26"#, 25),
        (#","limit":0"#, 1), (#","limit":-3"#, 1),
    ])
    func theLimitIsBetweenOneAndTwentyFive(_ text: String, _ limit: Int) throws {
        let stage = Stage()
        stage.connect(1)
        let config = "{\"private\":true,\"broadcast\":{\"replay\":{\"since\":5\(text)}}}"
        #expect(try stage.join("realtime:a", 1, config) == ["authorize anon read since 5 limit \(limit) a"])
    }

    /// As with supabase/realtime 2.174: either may be left out.
    @Test(arguments: [("{}", 25), (#"{"since":null}"#, 25), (#"{"limit":2}"#, 2)])
    func withoutATimeItBeginsAtZero(_ replay: String, _ limit: Int) throws {
        let stage = Stage()
        stage.connect(1)
        let config = "{\"private\":true,\"broadcast\":{\"replay\":\(replay)}}"
        #expect(try stage.join("realtime:a", 1, config) == ["authorize anon read since 0 limit \(limit) a"])
    }

    @Test(arguments: [#"{"private":true,"broadcast":{"replay":null}}"#, #"{"private":true,"broadcast":{}}"#])
    func noneWhereNoneIsAsked(_ config: String) throws {
        let stage = Stage()
        stage.connect(1)
        #expect(try stage.join("realtime:a", 1, config) == ["authorize anon read a"])
    }

    // MARK: Answering

    @Test func replayedMessagesFollowTheReply() throws {
        let (stage, id) = try waiting()
        let said = try stage.watch {
            $0.receiveAuthorization(id, is: .decided(.all, replay: [message("a"), message("b", raw: true)]))
        }
        #expect(said.count == 3)
        #expect(said[0].contains(#""status":"ok""#))
        #expect(
            said[1]
                == #"1 ← ["1",null,"realtime:a","broadcast",{"event":"e","payload":{"n":1},"type":"broadcast","meta":{"replayed":true,"id":"a"}}]"#
        )
        #expect(said[2] == "1 ← #4 realtime:a e raw [7]")
        guard case .send(let frame, _, _) = stage.actions[2] else { throw ShownFrame.Defect.kind4 }
        #expect(try ShownFrame(frame.bytes).kind4().metadata == #"{"replayed":true,"id":"b"}"#)
    }

    @Test func versionOneHasNoFormForBytes() throws {
        let (stage, id) = try waiting(.v1)
        let said = try stage.watch {
            $0.receiveAuthorization(id, is: .decided(.all, replay: [message("b", raw: true), message("a")]))
        }
        #expect(said.count == 2)
        #expect(
            said[1]
                == #"1 ← {"topic":"realtime:a","event":"broadcast","payload":{"event":"e","payload":{"n":1},"type":"broadcast","meta":{"replayed":true,"id":"a"}},"ref":null}"#
        )
    }

    @Test func theyReachNobodyElse() throws {
        let (stage, id) = try waiting()
        stage.connect(2)
        try stage.joinPrivate("realtime:a", 2)
        let said = try stage.watch { $0.receiveAuthorization(id, is: .decided(.all, replay: [message("a")])) }
        #expect(said.allSatisfy { $0.hasPrefix("1 ←") })
    }

    @Test func whoReadsPresenceAloneIsRefused() throws {
        let (stage, id) = try waiting()
        #expect(
            try stage.watch { $0.receiveAuthorization(id, is: .decided(.presence)) }.first?.contains(
                "You do not have permissions to read from this Channel topic: a") == true)
        #expect(stage.hub.channelCount == 0)
    }

    @Test func aFailedReplayRefusesTheJoin() throws {
        let (stage, id) = try waiting()
        #expect(
            try stage.watch { $0.receiveAuthorization(id, is: .replayFailed) }
                == [
                    #"1 ← ["1","1","realtime:a","phx_reply",{"status":"error","response":{"reason":"UnableToReplayMessages: Realtime was unable to replay messages"}}]"#
                ])
        #expect(stage.hub.channelCount == 0)
    }

    // MARK: Neither lost nor doubled

    @Test func whatWasReplayedDoesNotComeAgain() throws {
        let (stage, id) = try waiting()
        stage.connect(2)
        try stage.joinPrivate("realtime:a", 2)
        _ = try stage.watch { $0.receiveAuthorization(id, is: .decided(.all, replay: [message("a")])) }
        #expect(try stage.watch { $0.deliverEvent(live("a")) }.map { $0.prefix(4) } == ["2 ⇐ "])
        #expect(try stage.watch { $0.deliverEvent(live("b")) }.map { $0.prefix(6) } == ["1,2 ⇐ "])
        // Whoever takes the place of one who was replayed to hears it all.
        try stage.disconnect(1)
        stage.connect(1)
        try stage.joinPrivate("realtime:a", 1)
        #expect(try stage.watch { $0.deliverEvent(live("a")) }.map { $0.prefix(6) } == ["1,2 ⇐ "])
    }

    @Test func whatComesWhileTheJoinWaitsComesAfterTheReplay() throws {
        let (stage, id) = try waiting()
        #expect(try stage.watch { $0.deliverEvent(live("a")) }.isEmpty)
        #expect(try stage.watch { $0.deliverEvent(live("b")) }.isEmpty)
        let said = try stage.watch { $0.receiveAuthorization(id, is: .decided(.all, replay: [message("a")])) }
        #expect(said.count == 3, "the reply, a as replayed, b as live")
        #expect(said[1].contains(#""id":"a""#))
        #expect(said[2] == #"1 ← #4 realtime:a e json {"id":"b"}"#)
        #expect(stage.hub.heldBytes == 0)
    }

    @Test func alsoWhileTheFeedIsAwaited() throws {
        let stage = Stage()
        stage.connect(1)
        try stage.join(
            "realtime:a", 1,
            #"{"private":true,"broadcast":{"replay":{"since":5}},"postgres_changes":[{"schema":"public"}]}"#)
        let group = try #require(stage.subscribed.first)
        try stage.decide(.decided(.all))
        #expect(try stage.watch { $0.deliverEvent(live("b")) }.isEmpty)
        let said = try stage.watch { $0.changeSubscription(group, is: .live) }
        #expect(said[1] == #"1 ← #4 realtime:a e json {"id":"b"}"#)
    }

    @Test func joinsWithoutAReplayHearFromTheReplyOn() throws {
        let stage = Stage()
        stage.connect(1)
        try stage.join("realtime:a", 1, #"{"private":true}"#)
        let id = try #require(stage.asked.first)
        #expect(try stage.watch { $0.deliverEvent(live("a")) }.isEmpty)
        #expect(try stage.watch { $0.receiveAuthorization(id, is: .decided(.all)) }.count == 1)
    }

    @Test func moreThanCanBeKeptRefusesTheJoin() throws {
        var limits = HubLimits()
        limits.heldPerMember = 2
        let (stage, id) = try waiting(limits: limits)
        for name in ["a", "b", "c", "d"] { #expect(try stage.watch { $0.deliverEvent(live(name)) }.isEmpty) }
        #expect(stage.hub.heldBytes == 0)
        #expect(
            try stage.watch { $0.receiveAuthorization(id, is: .decided(.all)) }.first?.contains(
                "Realtime was unable to replay messages") == true)
        #expect(stage.hub.channelCount == 0)
    }

    @Test func nothingIsKeptForThoseWhoWent() throws {
        let (stage, _) = try waiting()
        _ = try stage.watch { $0.deliverEvent(live("a")) }
        #expect(stage.hub.heldBytes > 0)
        try stage.disconnect(1)
        #expect(stage.hub.heldBytes == 0)
        #expect(try stage.watch { $0.deliverEvent(live("a")) }.isEmpty)
    }

    // MARK: Messages from SQL

    @Test func publicAndPrivateMessagesAreToldApart() throws {
        let stage = Stage()
        for slot in Slot(1)...2 { stage.connect(slot) }
        try stage.join("realtime:a", 1)
        try stage.joinPrivate("realtime:a", 2)
        #expect(try stage.watch { $0.deliverEvent(live("a")) }.map { $0.prefix(4) } == ["2 ⇐ "])
    }

    /// A binary frame has a byte for the length of each name.
    @Test func longNamesGoAsText() throws {
        let stage = Stage()
        stage.connect(1)
        let topic = "realtime:" + String(repeating: "x", count: 250)
        try stage.join(topic, 1)
        let user = UserBroadcast(event: "e", encoding: .json, payload: Array("{}".utf8)[...], metadata: nil)
        let key = ChannelKey(topic: topic, isPrivate: false)
        #expect(
            try stage.watch {
                $0.deliverEvent(.broadcast(DatabaseBroadcast(key: key, id: "a", broadcast: .user(user))))
            }
                == [#"1 ⇐ [null,null,"\#(topic)","broadcast",{"event":"e","payload":{},"type":"broadcast"}]"#])
    }
}
