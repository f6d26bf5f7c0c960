import Foundation
import Hub
import TestSupport
import Testing
import Wire

/// How many sessions one user leaves behind, and what becomes of those that give way.
@Suite struct SessionShareTests {
    private static let config = RecoveryTests.config

    private func registry(_ most: Int) -> SessionRegistry {
        let registry = SessionRegistry(mostOfUser: most)
        registry.nobodyIsFromBefore()
        return registry
    }

    /// Where the join has to recover from.
    private func join(
        _ stage: Stage, _ slot: Slot, _ topic: String, by user: String?, role: String = "authenticated",
        ref: Int = 1, _ config: String = config
    ) throws -> RecoveryPoint? {
        stage.connect(slot, role: role, subject: user)
        try stage.join("realtime:\(topic)", slot, ref: "\(ref)", config)
        var point = ReturningTests.point(stage)
        for group in stage.subscribed {
            _ = try stage.watch { $0.changeSubscription(group, is: .live) }
            point = point ?? ReturningTests.point(stage)
        }
        return point
    }

    /// Comes and is gone, once in each of many channels; the feed goes on between them.
    private func comeAndGo(
        _ stage: Stage, _ topics: Range<Int>, by user: String?, role: String = "authenticated"
    ) throws {
        for number in topics {
            let slot = Slot(1000 + number % 100)
            _ = try join(stage, slot, "t\(number)", by: user, role: role)
            try stage.disconnect(slot)
            _ = try stage.watch { $0.deliverEvent(.boundary(4 + number)) }
        }
    }

    private func pass(_ seconds: Int64, _ stage: Stage, _ registry: SessionRegistry) throws {
        for _ in 0..<seconds {
            try stage.tick(after: 1000)
            registry.removeExpired(at: stage.now)
        }
    }

    private func stage(_ registry: SessionRegistry) throws -> Stage {
        let stage = Stage(sessions: registry)
        try stage.tick(after: 10_000)
        _ = try join(stage, 1, "bobs", by: "bob")
        _ = try stage.watch { $0.deliverEvent(.boundary(3)) }
        try stage.disconnect(1)
        return stage
    }

    /// Who was forgotten is remembered, so that it takes nothing from another: of all users 10,000, and no fewer than half as many.
    @Test(arguments: [4_999, 10_000]) func theOldestOfThoseWhoComeTooLateAreForgotten(others: Int) throws {
        let returning = ReturningTests()
        let registry = registry(20_000)
        let stage = try returning.stage(registry)
        try stage.disconnect(1)
        try pass(122, stage, registry)
        try comeAndGo(stage, 0..<others, by: "bob")
        try pass(122, stage, registry)
        try returning.join(stage, 2, ref: 1)
        try returning.acknowledge(stage, 2, mark: 50_000)
        try stage.disconnect(2)
        #expect(try returning.join(stage, 3, ref: 9).point == .mark(50_000))
        try returning.acknowledge(stage, 3, mark: 50_001)
        let point = try returning.join(stage, 4, ref: 9, alive: [3]).point
        #expect(point == (others < 5_000 ? .mark(50_000) : nil))
    }

    @Test func oneUsersSessionsPushOutOnlyHisOwn() throws {
        let registry = registry(10)
        let stage = try stage(registry)
        try comeAndGo(stage, 0..<500, by: "ann")
        #expect(registry.sessionsGivenWay == 490)
        // His ten, bob's, and what is kept of all that gave way.
        #expect((11...13).contains(registry.endedSessions))
        #expect(try join(stage, 2, "bobs", by: "bob") == .mark(0), "nothing of his is lost")
        #expect(try join(stage, 3, "bobs too", by: "bob") == nil)
    }

    /// Less is remembered, and nothing is missed: his clients are sent more than they lack.
    @Test func whoseSessionGaveWayIsSentAllThatItMissed() throws {
        let registry = registry(10)
        let stage = try stage(registry)
        try comeAndGo(stage, 0..<100, by: "ann")
        #expect(try join(stage, 2, "t0", by: "ann") == .mark(3))
        #expect(try join(stage, 3, "t50", by: "ann") == .mark(3))
        #expect(try join(stage, 4, "another", by: "ann") == .mark(3), "nobody knows that it is new")
        try pass(136, stage, registry)
        #expect(registry.endedSessions == 0 && registry.expectedEnds == 0)
        #expect(try join(stage, 5, "t1", by: "ann") == nil)
    }

    /// Who goes on with it takes no more: each place is kept for the window and a part of it.
    @Test func whatGaveWayTakesAFewPlaces() throws {
        let registry = registry(10)
        let stage = try stage(registry)
        for round in 0..<40 {
            try comeAndGo(stage, (round * 20)..<(round * 20 + 20), by: "ann")
            try pass(10, stage, registry)
            #expect(registry.endedSessions <= 10 + 1 + 10)
        }
        try pass(136, stage, registry)
        #expect(registry.endedSessions == 0)
    }

    /// Its place is kept a little longer, and holds up nobody else's end.
    @Test func whatGaveWayIsForgottenBehindWhatEndsLater() throws {
        let registry = registry(10)
        let stage = try stage(registry)
        // The window has eight steps of 15 s: one has just begun.
        try stage.tick(after: 15_000 - stage.now.monotonic % 15_000 + 1_000)
        try comeAndGo(stage, 0..<11, by: "ann")
        try pass(1, stage, registry)
        _ = try join(stage, 2, "cids", by: "cid")
        try stage.disconnect(2)
        try pass(120, stage, registry)
        #expect(registry.endedSessions == 1 && registry.expectedEnds == 1)
        try pass(15, stage, registry)
        #expect(registry.endedSessions == 0 && registry.expectedEnds == 0)
    }

    /// Its client comes all the same, and not for what another client of the same user left.
    @Test func whoseSessionGaveWayTakesNobodyElsesPlace() throws {
        let registry = registry(10)
        let stage = try stage(registry)
        let ann = ReturningTests()
        try ann.join(stage, 11, ref: 1)
        try ann.join(stage, 12, ref: 1, alive: [11])
        _ = try stage.watch { $0.deliverEvent(.boundary(4)) }
        try stage.disconnect(11)
        try pass(60, stage, registry)
        try stage.disconnect(12)
        try comeAndGo(stage, 0..<9, by: "ann")
        #expect(registry.sessionsGivenWay == 1)
        #expect(try ann.join(stage, 13, ref: 7).point != nil)
        // What is kept of the one that gave way ends before the other one does.
        try pass(80, stage, registry)
        #expect(try ann.join(stage, 14, ref: 9, alive: [13]).point != nil, "it is still expected")
    }

    /// Only one comes for it whose refs go on, as before it gave way.
    @Test func aPageThatIsUnloadedIsNobodyElses() throws {
        let registry = registry(10)
        let stage = try stage(registry)
        for number in 0..<12 {
            let slot = Slot(100 + number)
            _ = try join(stage, slot, "t\(number)", by: "ann")
            try stage.disconnect(slot, isUnloaded: true)
            _ = try stage.watch { $0.deliverEvent(.boundary(4 + number)) }
        }
        #expect(registry.sessionsGivenWay == 2 && registry.endedSessions == 1 + 10 + 1)
        #expect(try join(stage, 2, "t1", by: "ann") == nil)
        #expect(try join(stage, 3, "t0", by: "ann", ref: 9) == .mark(3), "the page is shown again")
    }

    /// Each loss counts for the window: four in five channels, and one more on its way.
    @Test func whoComesBackAllTheTimeIsWithinHisShare() throws {
        let registry = registry(25)
        let stage = try stage(registry)
        for _ in 0..<50 {
            for number in 0..<5 {
                let slot = Slot(100 + number)
                _ = try join(stage, slot, "t\(number)", by: "ann")
                try stage.disconnect(slot)
            }
            try pass(30, stage, registry)
        }
        #expect(registry.sessionsGivenWay == 0)
    }

    @Test func tokensWithoutAUserShareMore() throws {
        let registry = registry(10)
        let stage = try stage(registry)
        try comeAndGo(stage, 0..<201, by: nil, role: "anon")
        #expect(registry.sessionsGivenWay == 1)
        #expect(try join(stage, 2, "t0", by: nil, role: "anon") == .mark(3))
        #expect(try join(stage, 3, "t0", by: nil, role: "other") == nil)
    }

    /// A cursor is what a client said, and may be long.
    @Test func longCursorsCountAsMany() throws {
        let registry = registry(10)
        let stage = try stage(registry)
        func config(_ bytes: Int) -> String {
            Self.config.dropLast() + ",\"resume\":{\"cursor\":\"" + String(repeating: "x", count: bytes) + "\"}}"
        }
        for number in 0..<20 {
            let slot = Slot(100 + number)
            let point = try join(stage, slot, "t\(number)", by: "ann", config(5000))
            #expect(point == .cursor(String(repeating: "x", count: 5000)))
            try stage.disconnect(slot)
        }
        #expect(registry.endedSessions == 1 + 2)
        #expect(try join(stage, 2, "long", by: "ann", config(100_000)) == .cursor(""))
    }

    private func resident() throws -> Int {
        let pages = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8).split(separator: " ")
        return try #require(Int(pages[1])) * 4096
    }

    /// The figure of docs/threat-model.md.
    @Test(.enabled(if: getenv("ROOST_SLOW") != nil)) func whatASessionTakes() throws {
        let registry = registry(1000)
        let stage = try stage(registry)
        try comeAndGo(stage, 0..<1000, by: "warm")
        let before = try resident()
        for user in 0..<20 { try comeAndGo(stage, (1000 + user * 1000)..<(2000 + user * 1000), by: "user \(user)") }
        let each = (try resident() - before) / 20_000
        #expect(registry.endedSessions == 21_001)
        print("A session that waits takes \(each) bytes.")
        #expect(each < 1536)
    }

    /// Other hubs find the session or where it gave way to, never neither.
    @Test func whatGaveWayIsWrittenWithItsPlace() throws {
        let registry = registry(10)
        registry.startRecording {}
        let before = try stage(registry)
        try comeAndGo(before, 0..<10, by: "ann")
        registry.isWritten(registry.takeChanged(upTo: 1000), successfully: true)
        try comeAndGo(before, 10..<20, by: "ann")
        var (gone, isPlaced) = (0, false)
        while case let changed = registry.takeChanged(upTo: 1), !changed.isEmpty {
            gone += changed.count { $0.count == 0 }
            isPlaced = isPlaced || changed.contains { $0.count == 32 }
            #expect(gone == 0 || isPlaced, "\(changed)")
            registry.isWritten(changed, successfully: true)
        }
        #expect(gone == 10 && isPlaced)
    }

    /// The rows in the database are bounded as well, and the next process knows that some gave way.
    @Test func aRestartKnowsOfWhatGaveWay() throws {
        let first = registry(10)
        first.startRecording {}
        let before = try stage(first)
        var rows: [RecoveryKey: Int] = [:]
        for number in 0..<50 {
            try comeAndGo(before, number..<(number + 1), by: "ann")
            let changed = first.takeChanged(upTo: 1000)
            for record in changed { rows[record.key] = record.count > 0 ? record.count : nil }
            first.isWritten(changed, successfully: true)
        }
        #expect(rows.count == 10 + 1 + 1)
        // And other hubs that ask.
        let many = try #require(rows.first { $0.value == 32 }?.key)
        #expect(first.whereabouts(of: [many], at: before.now) == [.from(.mark(3))])
        let second = SessionRegistry()
        second.restoreSessions(rows.map { .init(key: $0.key, count: $0.value) })
        let stage = Stage(sessions: second)
        try stage.tick(after: 10_000)
        #expect(try join(stage, 2, "t0", by: "ann") == .restart)
        #expect(try join(stage, 3, "bobs", by: "bob") == .restart)
        #expect(try join(stage, 4, "bobs too", by: "bob") == nil)
    }
}
