import Hub
import Testing
import Wire

/// Connections that join nothing (wire-protocol A1: a sweep every ten minutes).
@Suite struct SweepTests {
    private static let interval: Int64 = 600_000

    @Test func oneThatNeverJoinsIsClosedAtTheSecondSweep() throws {
        let stage = Stage()
        stage.connect(1, expiresAt: 1_000_000)
        #expect(try stage.tick(after: 0).isEmpty)
        #expect(try stage.tick(after: Self.interval).isEmpty, "it may have come a moment ago")
        #expect(try stage.tick(after: Self.interval - 1).isEmpty)
        #expect(try stage.tick(after: 1) == ["close 1 1000 no channels"])
    }

    @Test func oneThatJoinsOrComesBackToAChannelStays() throws {
        let stage = Stage()
        stage.connect(1, expiresAt: 1_000_000)
        stage.connect(2, expiresAt: 1_000_000)
        try stage.join("realtime:a", 1)
        try stage.tick(after: 0)
        try stage.tick(after: Self.interval)
        try stage.join("realtime:a", 2)
        try stage.say(#"["1","2","realtime:a","phx_leave",{}]"#, from: 2)
        #expect(try stage.tick(after: Self.interval).isEmpty, "one is in a channel, the other was until just now")
        #expect(try stage.tick(after: Self.interval) == ["close 2 1000 no channels"])
    }
}
