import Hub
import Testing
import Wire

/// New tokens on private channels (wire-protocol A8).
@Suite struct PrivateTokenTests {
    private static let secret = ChannelKey(topic: "realtime:a", isPrivate: true)

    private func token(_ value: String, ref: String = "5") -> String {
        #"["1","\#(ref)","realtime:a","access_token",{"access_token":"\#(value)"}]"#
    }

    private func stage(
        _ config: String = "{}", reading read: ChannelExtensions = .all, expiresAt: Int = 10_000
    ) throws -> Stage {
        let stage = Stage()
        stage.connect(1, expiresAt: expiresAt)
        try stage.joinPrivate("realtime:a", 1, config, reading: read)
        return stage
    }

    private func isHeard(_ stage: Stage) throws -> Bool {
        try stage.watch { $0.publishMessage(.text(Array("{}".utf8)), to: Self.secret) }.count == 2
    }

    @Test func theSameTokenAsksNothing() throws {
        let stage = try stage()
        #expect(try stage.say(token("good anon 10000"), from: 1).isEmpty)
    }

    @Test func aNewOneIsAskedAboutAndTheMemberStays() throws {
        let stage = try stage()
        #expect(try stage.say(token("good user 2000"), from: 1) == ["authorize user read a"])
        #expect(try isHeard(stage))
        let id = AuthorizationID(loop: 0, serial: try #require(stage.hub.openQuestions.first?.serial))
        #expect(
            try stage.watch { $0.receiveAuthorization(id, is: .decided(.all)) }.isEmpty, "no reply, as in the original")
        #expect(try isHeard(stage))
        #expect(try stage.tick(after: 999_000).isEmpty, "the old token would have lasted longer; the new one counts")
        #expect(try stage.tick(after: 1_000).last?.contains("phx_error") == true)
    }

    @Test(arguments: [ChannelExtensions.all, .broadcast, .presence]) func aRightThatIsLostEndsTheChannel(
        _ before: ChannelExtensions
    ) throws {
        let stage = try stage(reading: before)
        try stage.say(token("good user 2000"), from: 1)
        #expect(
            try stage.decide(.decided(before == .all ? .presence : []))
                == [
                    #"1 ← ["1",null,"realtime:a","system",{"extension":"system","status":"error","message":"You no longer have permission to read from this Channel topic: a","channel":"a"}]"#,
                    #"1 ← ["1","1","realtime:a","phx_error",{"code":403,"reason":"Unauthorized: You no longer have permission to read from this Channel topic: a"}]"#,
                ])
        #expect(stage.hub.channelCount == 0)
    }

    @Test func whatIsGainedIsGiven() throws {
        let config = #"{"presence":{"enabled":true}}"#
        let stage = try stage(config, reading: .presence)
        #expect(try !isHeard(stage))
        try stage.say(token("good user 2000"), from: 1)
        #expect(try stage.decide(.decided(.all)).isEmpty)
        #expect(try isHeard(stage))

        let other = try self.stage(config, reading: .broadcast)
        try other.say(token("good user 2000"), from: 1)
        #expect(try other.decide(.decided(.all)) == [#"1 ← ["1",null,"realtime:a","presence_state",{}]"#])
        try other.disconnect(1)
        #expect(other.hub.channelCount == 0)
    }

    /// While Postgres is away nothing ends, as long as the old token lasts: a channel that ended would be refused its rejoin next.
    @Test func withoutAnAnswerTheMemberStaysAndIsAskedAboutAgain() throws {
        let stage = try stage()
        try stage.say(token("good user 2000"), from: 1)
        #expect(try stage.decide(.unavailable).isEmpty)
        #expect(try isHeard(stage))
        #expect(try stage.tick(after: 1000).isEmpty)
        #expect(try stage.tick(after: 1000) == ["authorize user read a"])
        #expect(try stage.decide(.unavailable).isEmpty)
        #expect(try stage.tick(after: 2000) == ["authorize user read a"])
        #expect(try stage.decide(.decided(.all)).isEmpty)
        #expect(try isHeard(stage))
        #expect(try stage.tick(after: 10_000).isEmpty, "it is decided")
        #expect(try stage.tick(after: 986_000).last?.contains("phx_error") == true, "the new token counts")
    }

    @Test func aRightThatIsLostEndsTheChannelWhenPostgresIsBack() throws {
        let stage = try stage()
        try stage.say(token("good user 2000"), from: 1)
        try stage.decide(.unavailable)
        try stage.tick(after: 2000)
        #expect(try stage.decide(.decided([])).last?.contains("phx_error") == true)
    }

    /// Its client did what it could: it is told to come back, and not that its token has expired.
    @Test func whereTheOldTokenEndsMeanwhileTheSocketEnds() throws {
        let stage = try stage(expiresAt: 1010)
        try stage.say(token("good user 2000"), from: 1)
        try stage.decide(.unavailable)
        #expect(try stage.tick(after: 10_000).last == "close 1 1012 come back")
        try stage.disconnect(1)
        #expect(stage.hub.channelCount == 0)
    }

    /// A backend says that rights have changed: they are not kept for as long as Postgres is away.
    @Test func whereABackendAsksInVainTheSocketEnds() throws {
        let stage = Stage()
        stage.connect(1, subject: "ann")
        try stage.joinPrivate("realtime:a", 1)
        _ = try stage.watch { _ = $0.refreshUser("ann") }
        #expect(try stage.decide(.unavailable) == ["close 1 1012 come back"])
    }

    /// A no to a rejoin is for some clients the last word. It is the policies' to say, and counts until the client asks again.
    @Test func aRejoinWithoutTheRightIsRefused() throws {
        let stage = try stage()
        try stage.say(token("good user 2000"), from: 1)
        _ = try stage.decide(.decided([]))
        try stage.join("realtime:a", 1, #"{"private":true}"#)
        let said = try stage.decide(.decided([]))
        #expect(said.count == 1 && said[0].contains(#""error","response":{"reason":"Unauthorized: "#), "\(said)")
        try stage.join("realtime:a", 1, #"{"private":true}"#)
        #expect(try stage.decide(.decided(.all)).contains { $0.contains(#""status":"ok""#) })
        #expect(try isHeard(stage))
    }

    /// The hub itself refuses no rejoin for what it cannot know: the socket is closed, which every client comes back from.
    @Test func aRejoinThatCannotBeDecidedEndsTheSocket() throws {
        let stage = try stage()
        try stage.join("realtime:b", 1, #"{"private":true}"#)
        #expect(try stage.decide(.unavailable).count == 1, "a first join is told")
        try stage.say(token("good user 2000"), from: 1)
        _ = try stage.decide(.decided([]))
        try stage.join("realtime:a", 1, #"{"private":true}"#)
        #expect(try stage.decide(.unavailable) == ["close 1 1012 come back"])
        #expect(stage.hub.counters.joinsRefused == 2)
        try stage.disconnect(1)
        #expect(stage.hub.channelCount == 0)
    }

    @Test func theOldTokensEndEndsWhatItGave() throws {
        let stage = try stage(expiresAt: 1010)
        try stage.say(token("good user 2000"), from: 1)
        let late = try #require(stage.asked.first)
        #expect(try stage.tick(after: 10_000).last?.contains("phx_error") == true)
        #expect(try stage.watch { $0.receiveAuthorization(late, is: .decided(.all)) }.isEmpty)
        #expect(stage.hub.channelCount == 0)
    }

    @Test func onlyTheLastTokenCounts() throws {
        let stage = try stage()
        try stage.say(token("good one 2000"), from: 1)
        let first = try #require(stage.asked.first)
        try stage.say(token("good two 3000"), from: 1)
        let second = try #require(stage.asked.first)
        #expect(try stage.watch { $0.receiveAuthorization(first, is: .decided([])) }.isEmpty)
        #expect(try stage.say(token("good two 3000"), from: 1).isEmpty, "asked already")
        #expect(try stage.watch { $0.receiveAuthorization(second, is: .decided(.all)) }.isEmpty)
        #expect(try isHeard(stage))
        // Back to the token it has, while another is asked about.
        try stage.say(token("good three 4000"), from: 1)
        let third = try #require(stage.asked.first)
        #expect(try stage.say(token("good two 3000"), from: 1).isEmpty)
        #expect(try stage.watch { $0.receiveAuthorization(third, is: .decided([])) }.isEmpty)
        #expect(try isHeard(stage))
    }

    @Test func aBadTokenEndsTheChannel() throws {
        let stage = try stage()
        try stage.say(token("good user 2000"), from: 1)
        let late = try #require(stage.asked.first)
        #expect(try stage.say(token("bad"), from: 1).last?.contains("phx_error") == true)
        #expect(try stage.watch { $0.receiveAuthorization(late, is: .decided(.all)) }.isEmpty)
        #expect(stage.hub.channelCount == 0)
    }

    // MARK: Writes

    @Test func writeRightsAreAskedAnew() throws {
        let stage = try stage(#"{"broadcast":{"ack":true}}"#)
        try stage.say(#"["1","6","realtime:a","broadcast",{}]"#, from: 1)
        #expect(try stage.decide(.decided([])).count == 1)
        try stage.say(token("good user 2000"), from: 1)
        let read = try #require(stage.asked.first)
        #expect(try stage.say(#"["1","7","realtime:a","broadcast",{}]"#, from: 1).isEmpty, "judged by the new token")
        #expect(try stage.watch { $0.receiveAuthorization(read, is: .decided(.all)) } == ["authorize user write a"])
        #expect(try stage.decide(.decided(.broadcast)).first == "relay broadcast realtime:a private")
    }

    @Test func anAnswerForTheOldTokenIsNone() throws {
        let stage = try stage(#"{"broadcast":{"ack":true}}"#)
        try stage.say(#"["1","6","realtime:a","broadcast",{}]"#, from: 1)
        let old = try #require(stage.asked.first)
        try stage.say(token("good user 2000"), from: 1)
        let read = try #require(stage.asked.first)
        #expect(try stage.watch { $0.receiveAuthorization(old, is: .decided(.all)) }.isEmpty)
        #expect(try stage.watch { $0.receiveAuthorization(read, is: .decided(.all)) } == ["authorize user write a"])
        #expect(try stage.decide(.decided([])).first?.contains("Unauthorized") == true)
    }

    @Test func whatWaitsIsAnsweredWhenTheRightIsLost() throws {
        let stage = try stage(#"{"broadcast":{"ack":true}}"#)
        try stage.say(token("good user 2000"), from: 1)
        let read = try #require(stage.asked.first)
        try stage.say(#"["1","7","realtime:a","broadcast",{}]"#, from: 1)
        let said = try stage.watch { $0.receiveAuthorization(read, is: .decided([])) }
        #expect(said.count == 3)
        #expect(said[0].contains(#""7""#))
        #expect(stage.hub.heldBytes == 0)
    }

    // MARK: While the join waits

    @Test func aJoinThatWaitsIsAskedForTheNewToken() throws {
        let stage = Stage()
        stage.connect(1)
        try stage.join("realtime:a", 1, #"{"private":true}"#)
        let old = try #require(stage.asked.first)
        #expect(try stage.say(token("good user 2000"), from: 1) == ["authorize user read a"])
        let new = try #require(stage.asked.first)
        #expect(try stage.watch { $0.receiveAuthorization(old, is: .decided(.all)) }.isEmpty)
        #expect(try stage.watch { $0.receiveAuthorization(new, is: .decided(.all)) }.count == 1)
        #expect(try stage.tick(after: 1_000_000).last?.contains("phx_error") == true)
    }

    @Test func theSubscriptionFollowsTheToken() throws {
        let stage = Stage()
        stage.connect(1)
        try stage.join(
            "realtime:a", 1, #"{"private":true,"postgres_changes":[{"event":"*","schema":"public","table":"t"}]}"#)
        let group = try #require(stage.subscribed.first)
        try stage.decide(.decided(.all))
        _ = try stage.watch { $0.changeSubscription(group, is: .live) }
        #expect(try stage.say(token("good user 2000"), from: 1) == ["authorize user read a"])
        let said = try stage.decide(.decided(.all))
        #expect(said.contains { $0.hasPrefix("subscribe") && $0.contains("user") })
        #expect(said.contains("unsubscribe \(group.loop).\(group.serial)"))
    }

    /// The policies have answered, the feed has not: the new token is asked about beside it.
    @Test func aTokenBetweenTheTwoAnswers() throws {
        let stage = Stage()
        stage.connect(1)
        try stage.join("realtime:a", 1, #"{"private":true,"postgres_changes":[{"schema":"public"}]}"#)
        let group = try #require(stage.subscribed.first)
        #expect(try stage.decide(.decided(.all)).isEmpty)
        #expect(try stage.say(token("good anon 2000"), from: 1) == ["authorize anon read a"])
        let id = try #require(stage.asked.first)
        #expect(try stage.watch { $0.changeSubscription(group, is: .live) }.first?.contains(#""ok""#) == true)
        _ = try stage.watch { $0.receiveAuthorization(id, is: .decided(.all)) }
        #expect(try isHeard(stage))
        try stage.disconnect(1)
        #expect(stage.hub.channelCount == 0)
    }
}
