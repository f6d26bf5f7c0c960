import Hub
import Testing
import Wire

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

    /// No client can match them to anything.
    @Test func withoutARefOneErrorASecond() throws {
        let stage = try room()
        for number in 1...3 { _ = try track(number, stage, ref: "null") }
        #expect(try track(4, stage, ref: "null") == [#"1 ← ["1",null,"realtime:a","# + Self.refusal])
        for number in 5...50 { #expect(try track(number, stage, ref: "null") == []) }
        #expect(stage.hub.refused == [.presencePerSecond: 47])
        try stage.tick(after: 1000)
        for number in 51...53 { _ = try track(number, stage, ref: "null") }
        #expect(stage.hub.refused == [.presencePerSecond: 48])
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
