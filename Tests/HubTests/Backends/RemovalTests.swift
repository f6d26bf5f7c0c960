import Hub
import Testing
import Wire

/// What backends do to the members of channels that are a user's.
@Suite struct RemovalTests {
    private static let key = ChannelKey(topic: "realtime:a", isPrivate: false)
    private static let secret = ChannelKey(topic: "realtime:a", isPrivate: true)

    private func stage() throws -> Stage {
        let stage = Stage()
        for slot in [1, 2, 3] as [Slot] { stage.connect(slot, subject: slot == 3 ? "bob" : "ada") }
        for slot in [1, 2, 3] as [Slot] { try stage.join("realtime:a", slot) }
        return stage
    }

    @Test func whoIsTakenOutIsToldForGood() throws {
        let stage = try stage()
        var count = 0
        let told = try stage.watch { count = $0.removeUser("bob", from: Self.key, seconds: nil) }
        #expect(count == 1)
        #expect(
            told == [
                #"3 ← ["1",null,"realtime:a","system",{"extension":"system","status":"error","message":"You were removed from this Channel topic: a","channel":"a"}]"#,
                #"3 ← ["1","1","realtime:a","phx_close",{"code":403,"reason":"Unauthorized: You were removed from this Channel topic: a"}]"#,
            ])
        #expect(stage.hub.count(of: Self.key).connections == 2)
        #expect(try stage.join("realtime:a", 3, ref: "2").contains { $0.contains(#""status":"ok""#) })
    }

    @Test func allSocketsOfAUserAreMeantAndNoOtherRoomOfTheName() throws {
        let stage = try stage()
        #expect(stage.hub.removeUser("ada", from: Self.secret, seconds: nil) == 0)
        #expect(stage.hub.removeUser("nobody", from: Self.key, seconds: nil) == 0)
        #expect(stage.hub.removeUser("ada", from: Self.key, seconds: nil) == 2)
        #expect(stage.hub.count(of: Self.key).connections == 1)
    }

    @Test func whoIsKeptOutJoinsWhenTheTimeIsOver() throws {
        let stage = try stage()
        #expect(stage.hub.bars.barUser("bob", from: Self.key, seconds: 10, at: stage.now.monotonic))
        _ = try stage.watch { _ = $0.removeUser("bob", from: Self.key, seconds: 10) }
        stage.now = stage.now.advanced(by: 4500)
        let refused = try stage.join("realtime:a", 3, ref: "2")
        #expect(refused.count == 1 && refused[0].contains("you may join again in 6 seconds"))
        #expect(try stage.join("realtime:b", 3, ref: "3").contains { $0.contains(#""status":"ok""#) })
        stage.now = stage.now.advanced(by: 6000)
        #expect(try stage.join("realtime:a", 3, ref: "4").contains { $0.contains(#""status":"ok""#) })
    }

    @Test func aNewTokenIsNoWayAroundIt() throws {
        let stage = Stage()
        stage.connect(1)
        try stage.join("realtime:a", 1)
        #expect(stage.hub.bars.barUser("user", from: Self.key, seconds: 10, at: stage.now.monotonic))
        let token = #"["1","5","realtime:a","access_token",{"access_token":"good user 2000 user"}]"#
        #expect(try stage.say(token, from: 1).last?.contains("Unauthorized") == true)
    }

    @Test func thereIsABoundToHowManyAreKeptOut() {
        let bars = ChannelBars()
        for number in 0..<ChannelBars.most {
            #expect(bars.barUser(Name("u\(number)"), from: Self.key, seconds: 10, at: 0))
        }
        #expect(!bars.barUser("one too many", from: Self.key, seconds: 10, at: 9_999))
        #expect(bars.barUser("u7", from: Self.key, seconds: 10, at: 9_999), "who is in the book may stay longer")
        #expect(bars.barUser("one too many", from: Self.key, seconds: 10, at: 10_000), "the others' time is over")
    }

    // MARK: Rights

    @Test func rightsAreAskedAnewAndKeptUntilTheyAreDecided() throws {
        let stage = Stage()
        stage.connect(1, subject: "ada")
        try stage.joinPrivate("realtime:a", 1)
        var count = 0
        #expect(try stage.watch { count = $0.refreshUser("ada") } == ["authorize anon read a"])
        #expect(count == 1)
        #expect(
            try stage.watch { $0.publishMessage(.text(Array("{}".utf8)), to: Self.secret) }.count == 2, "still heard")
        _ = try stage.watch { _ = $0.refreshUser("ada") }
        #expect(try stage.decide(.decided(.all)).isEmpty)
        #expect(stage.hub.count(of: Self.secret).connections == 1)
    }

    @Test func whoMayNotReadAnyMoreIsOut() throws {
        let stage = Stage()
        stage.connect(1, subject: "ada")
        try stage.joinPrivate("realtime:a", 1)
        _ = try stage.watch { _ = $0.refreshUser("ada") }
        #expect(try stage.decide(.decided([])).last?.contains("phx_error") == true)
        #expect(stage.hub.channelCount == 0)
    }

    @Test func publicChannelsAndOthersHaveNothingToDecide() throws {
        let stage = try stage()
        #expect(stage.hub.refreshUser("ada") == 0)
        try stage.joinPrivate("realtime:a", 3, ref: "2")
        #expect(stage.hub.refreshUser("ada") == 0)
    }

    /// What another hub asks is read from Redis.
    @Test func aBarOfWhateverTimeDoesNotOverflow() {
        let bars = ChannelBars()
        for seconds in [Int.min, -1, .max] { #expect(bars.barUser("u", from: Self.key, seconds: seconds, at: 0)) }
    }
}
