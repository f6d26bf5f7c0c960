import Hub
import Testing
import Wire

@Suite struct JoinRateTests {
    private static let refusal =
        #""phx_reply",{"status":"error","response":{"reason":"ClientJoinRateLimitReached: Too many joins per second: one socket may make 2 (limits.joins_per_second); join again later"}}]"#

    /// Two joins a second, after five at once.
    private func stage() -> Stage {
        var limits = HubLimits()
        limits.joinsPerSecond = 2
        limits.channelsPerConnection = 3
        let stage = Stage(limits: limits)
        stage.connect(1)
        stage.connect(2)
        return stage
    }

    private func isOK(_ said: [String]) -> Bool { said.contains { $0.contains(#""phx_reply",{"status":"ok""#) } }

    @Test func allChannelsAtOnceAndSomeMore() throws {
        let stage = stage()
        for number in 1...5 { #expect(isOK(try stage.join("realtime:\(number % 3)", 1, ref: "\(number)"))) }
        #expect(try stage.join("realtime:0", 1, ref: "6") == [#"1 ← ["6","6","realtime:0","# + Self.refusal])
        #expect(stage.hub.refused == [.joinsPerSecond: 1])
    }

    @Test func laterItMayJoinAgain() throws {
        let stage = stage()
        for number in 1...6 { try stage.join("realtime:a", 1, ref: "\(number)") }
        try stage.tick(after: 499)
        #expect(!isOK(try stage.join("realtime:a", 1, ref: "7")))
        try stage.tick(after: 1)
        #expect(isOK(try stage.join("realtime:a", 1, ref: "8")))
        #expect(!isOK(try stage.join("realtime:b", 1, ref: "9")))
    }

    @Test func othersAreNotConcerned() throws {
        let stage = stage()
        for number in 1...9 { try stage.join("realtime:a", 1, ref: "\(number)") }
        #expect(isOK(try stage.join("realtime:a", 2)))
    }

    @Test func channelsStayAndSpeak() throws {
        let stage = stage()
        try stage.join("realtime:kept", 1, #"{"broadcast":{"ack":true,"self":true}}"#)
        for number in 2...20 { try stage.join("realtime:a", 1, ref: "\(number)") }
        let said = try stage.say(#"["1","30","realtime:kept","broadcast",{"event":"e","payload":{}}]"#, from: 1)
        #expect(said.contains { $0.hasPrefix("1 ⇐") })
        #expect(isOK(said))
        #expect(isOK(try stage.say(#"["1","31","realtime:kept","phx_leave",{}]"#, from: 1)), "a leave is never refused")
        #expect(isOK(try stage.say(#"[null,"32","phoenix","heartbeat",{}]"#, from: 1)))
    }

    /// Its client has given the old one up; what it would still hear would be for nobody, and no leave could end it.
    @Test func aRefusedJoinEndsWhatItWasToReplace() throws {
        let stage = stage()
        for number in 1...6 { try stage.join("realtime:a", 1, ref: "\(number)") }
        #expect(stage.hub.channelCount == 0)
    }

    /// Each costs a look at a token.
    @Test func joinsThatFailCountToo() throws {
        let stage = stage()
        for number in 1...5 {
            try stage.say(
                #"["\#(number)","\#(number)","realtime:a","phx_join",{"access_token":"bad"}]"#, from: 1)
        }
        #expect(try stage.join("realtime:a", 1, ref: "6") == [#"1 ← ["6","6","realtime:a","# + Self.refusal])
    }

    @Test func zeroIsNoLimit() throws {
        let stage = Stage()
        stage.connect(1)
        for number in 1...5000 { #expect(isOK(try stage.join("realtime:a", 1, ref: "\(number)"))) }
    }
}
