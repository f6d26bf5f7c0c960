import Push
import Testing

/// Random facts, standings, posts, tokens, outcomes, restarts and another hub, against a model of what is true.
@Suite struct ActivityModelTests {
    @Test(arguments: 0..<8) func keepsItsPromises(_ seed: Int) throws {
        var world = try ActivityWorld(seed: UInt64(seed))
        for _ in 0..<1_500 { try world.step() }
        let seen = world.seen
        try world.settle()
        for (what, least) in [
            "pushed": 100, "shown": 100, "alert pushed": 1, "end pushed": 5, "ended": 5, "withdrawn": 1, "refused": 1,
            "stale": 5, "withheld": 5, "queued": 5, "unanswered": 10, "rotated": 10, "restarted": 1,
        ] {
            #expect(seen[what, default: 0] >= least, "\(what): \(seen)")
        }
    }
}
