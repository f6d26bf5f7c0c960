import Testing

/// Hubs on several loops, with clients that lose their sockets at any moment, against plain lists of what was sent and
/// what every client has read.
@Suite struct HistoryModelTests {
    @Test(arguments: 0..<40) func nobodyMissesAMessage(_ seed: Int) throws {
        var world = HistoryWorld(seed: UInt64(seed), loops: 1 + seed % 3)
        for _ in 0..<1_500 { try world.step() }
        try world.end()
        #expect(world.sent > 200)
        #expect(world.losses > 40)
        #expect(world.caughtUp > 100, "a run in which nobody comes back for anything proves nothing")
    }
}
