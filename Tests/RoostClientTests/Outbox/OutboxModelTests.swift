import Testing

/// An outbox whose process dies between any two writes, whose sends end in every way, whose storage fails: against a
/// server that keeps one row for each `localID`, and a plain list of what was put in.
@Suite struct OutboxModelTests {
    @Test(arguments: 0..<100) func everyPayloadIsThereOnceAndInOrder(_ seed: Int) throws {
        // Half of the worlds have a storage that only dies; the others have one that fails and goes on, too.
        var world = try OutboxWorld(seed: UInt64(seed), storageFails: seed % 2 == 1)
        for _ in 0..<500 { try world.step() }
        try world.end()
        #expect(world.delivered > 50)
        #expect(world.deaths > 5, "a run without deaths proves nothing about them")
        #expect(world.repeats > 0, "nothing was sent twice, so nothing was lost on the way")
    }
}
