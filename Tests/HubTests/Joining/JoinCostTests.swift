import Glibc
import Hub
import Matching
import Testing
import Wire

/// What a join costs must not depend on what others ask for.
@Suite struct JoinCostTests {
    private static func config(_ number: Slot) -> String {
        #"{"postgres_changes":[{"event":"*","schema":"public","table":"todos","filter":"id=eq.\#(number)"}]}"#
    }

    /// A hub on one of whose channels so many ask for a row each.
    private func stage(of members: Slot) throws -> Stage {
        let stage = Stage()
        for slot in 0..<members {
            stage.connect(slot)
            try stage.join("realtime:a", slot, Self.config(slot))
        }
        stage.connect(members)
        return stage
    }

    /// CPU nanoseconds of the thread for one who joins with a filter of its own and leaves: the least of several rounds, which
    /// others who use the machine do not change.
    private func cost(on stage: Stage, slot: Slot) throws -> UInt64 {
        func now() -> UInt64 {
            var time = timespec()
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
            return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
        }
        return try (0..<10).map { _ in
            let start = now()
            for _ in 0..<20 {
                try stage.join("realtime:a", slot, Self.config(slot))
                try stage.say(#"["1","2","realtime:a","phx_leave",{}]"#, from: slot)
            }
            return (now() - start) / 20
        }.min() ?? 0
    }

    @Test func joinsCostTheSameWhateverOthersFilterBy() throws {
        let (few, many) = (try stage(of: 250), try stage(of: 8000))
        #expect(few.hub.groupCount == 250)
        #expect(many.hub.groupCount == 8000)
        let (one, other) = (try cost(on: few, slot: 250), try cost(on: many, slot: 8000))
        // With a look at each group it is more than twenty times as much.
        #expect(other < one * 5, "\(one) ns among 250, \(other) ns among 8,000")
    }

    /// Bindings of one `parametersHash` would stand in one bucket, which clients could fill.
    @Test func bindingsAreHashedByAllThatTheyAskFor() throws {
        let one = ChangeBinding(try JSON(parsing: Array(#"{"table":"a","filter":"id=eq.1"}"#.utf8)))
        let same = ChangeBinding(try JSON(parsing: Array(#"{"filter":"id=eq.1","schema":"public","table":"a"}"#.utf8)))
        let other = ChangeBinding(try JSON(parsing: Array(#"{"table":"a","filter":"id=eq.2"}"#.utf8)))
        #expect(one.hashValue == same.hashValue && one == same)
        #expect(one.hashValue != other.hashValue && one != other)
    }

    /// Whoever comes and goes while the feed does not answer takes no room.
    @Test func membersWhoLeaveAreForgottenWhileTheFeedDoesNotAnswer() throws {
        let stage = Stage()
        for slot in Slot(0)..<10 {
            stage.connect(slot)
            try stage.join("realtime:a", slot, Self.config(0))
        }
        stage.connect(10)
        for _ in 0..<1000 {
            try stage.join("realtime:a", 10, Self.config(0))
            try stage.say(#"["1","2","realtime:a","phx_leave",{}]"#, from: 10)
        }
        #expect(stage.hub.placesOfWaiting <= 20)
        for slot in Slot(0)..<10 { try stage.disconnect(slot) }
        #expect(stage.hub.groupCount == 0)
    }
}
