import Hub
import TestSupport
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

@Suite struct PresenceRateTests {
    /// Two a second, after three at once.
    private func room() throws -> Stage {
        var limits = HubLimits()
        limits.presencePerSecond = 2
        limits.channelsPerConnection = 1
        let stage = Stage(limits: limits)
        stage.connect(1)
        stage.connect(2, .v1)
        try stage.join("realtime:a", 1)
        try stage.joinV1("realtime:a", 2)
        return stage
    }

    private func track(_ number: Int, _ stage: Stage, ref: String = #""9""#) throws -> [String] {
        try stage.say(
            #"["1",\#(ref),"realtime:a","presence",{"event":"track","payload":{"n":\#(number)}}]"#, from: 1)
    }

    private static let refusal =
        #""phx_reply",{"status":"error","response":{"reason":"ClientPresenceRateLimitReached: Too many presence messages per second: one socket may send 2 (limits.presence_per_second); send again later"}}]"#

    @Test func overTheRateIsAnErrorAndChangesNothing() throws {
        let stage = try room()
        for number in 1...3 { #expect(try track(number, stage).contains { $0.hasPrefix("1 ⇐") }) }
        #expect(try track(4, stage) == [#"1 ← ["1","9","realtime:a","# + Self.refusal])
        #expect(stage.relays.isEmpty)
        #expect(stage.hub.refused == [.presencePerSecond: 1])
        try stage.tick(after: 500)
        #expect(
            try track(5, stage).contains { $0.hasPrefix("1 ⇐") && $0.contains(#""n":3"#) && $0.contains(#""n":5"#) })
    }

    /// No client could match it to anything.
    @Test func withoutARefNoError() throws {
        let stage = try room()
        for number in 1...3 { _ = try track(number, stage, ref: "null") }
        for number in 4...50 { #expect(try track(number, stage, ref: "null") == []) }
        #expect(stage.hub.refused == [.presencePerSecond: 47])
        #expect(stage.hub.counters.messagesRefused == [.limit: 47])
    }

    /// Whoever wants to be gone is.
    @Test func untrackIsNeverRefused() throws {
        let stage = try room()
        for number in 1...20 { _ = try track(number, stage) }
        let said = try stage.say(#"["1","9","realtime:a","presence",{"event":"untrack"}]"#, from: 1)
        #expect(said.contains { $0.contains(#""leaves":{"#) && $0.contains(#""n":3"#) })
        #expect(said.contains { $0.contains(#""status":"ok""#) })
    }

    @Test func othersAreNotConcerned() throws {
        let stage = try room()
        for number in 1...20 { _ = try track(number, stage) }
        let said = try stage.say(
            #"{"topic":"realtime:a","event":"presence","payload":{"event":"track","payload":{}},"ref":"5","join_ref":"1"}"#,
            from: 2)
        #expect(said.contains { $0.contains(#""status":"ok""#) })
    }
}

/// How long a socket is left unread. What it sent is handled all the same, which is the gateway's part.
@Suite struct PauseTests {
    private func hub(messages: Int = 0, bytes: Int = 0) -> Hub {
        var limits = HubLimits()
        limits.messagesPerSecond = messages
        limits.bytesPerSecond = bytes
        let stage = Stage(limits: limits)
        stage.connect(1)
        stage.connect(2)
        return stage.hub
    }

    @Test func twoSecondsOfMessagesAtOnceThenOneByOne() {
        let hub = hub(messages: 10)
        for _ in 0..<20 { #expect(hub.pause(after: 5, endsMessage: true, from: 1, at: 7) == 0) }
        #expect(hub.pause(after: 5, endsMessage: true, from: 1, at: 7) == 100)
        #expect(hub.pause(after: 5, endsMessage: true, from: 1, at: 107) == 100)
        #expect(hub.pause(after: 5, endsMessage: true, from: 2, at: 107) == 0, "another socket")
        #expect(hub.slowed == [.messagesPerSecond: 2])
    }

    @Test func piecesAreNoMessages() {
        let hub = hub(messages: 1)
        for _ in 0..<100 { #expect(hub.pause(after: 256, endsMessage: false, from: 1, at: 0) == 0) }
    }

    @Test func bytesCountInPiecesToo() {
        let hub = hub(bytes: 1000)
        #expect(hub.pause(after: 2000, endsMessage: false, from: 1, at: 0) == 0)
        #expect(hub.pause(after: 256, endsMessage: false, from: 1, at: 0) == 256)
        #expect(hub.pause(after: 256, endsMessage: true, from: 1, at: 256) == 256)
        #expect(hub.slowed == [.bytesPerSecond: 2])
    }

    @Test func theLongerPauseCounts() {
        let hub = hub(messages: 1, bytes: 1000)
        for _ in 0..<2 { _ = hub.pause(after: 1000, endsMessage: true, from: 1, at: 0) }
        #expect(hub.pause(after: 100, endsMessage: true, from: 1, at: 0) == 1000)
        #expect(hub.pause(after: 3900, endsMessage: false, from: 1, at: 0) == 4000)
    }

    @Test func noRateNoPause() {
        let hub = hub()
        for _ in 0..<1000 { #expect(hub.pause(after: 1_000_000, endsMessage: true, from: 1, at: 0) == 0) }
        #expect(hub.slowed.isEmpty)
    }
}
