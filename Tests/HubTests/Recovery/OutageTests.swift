import Hub
import Testing

/// The recovery window while Postgres is away: joins for row changes are refused, so nobody's time runs out.
@Suite struct OutageTests {
    /// A join of ann's, and where it has to recover from.
    private func join(_ stage: Stage, _ slot: Slot) throws -> RecoveryPoint? {
        stage.connect(slot, subject: "ann")
        try stage.join("realtime:a", slot, ref: "1", RecoveryTests.config)
        let group = stage.subscribed.first
        if let point = point(stage) { return point }
        if let group { _ = try stage.watch { $0.changeSubscription(group, is: .live) } }
        return point(stage)
    }

    private func point(_ stage: Stage) -> RecoveryPoint? {
        stage.actions.compactMap { if case .recover(_, let question) = $0 { question.from } else { nil } }.first
    }

    /// A hub with a member of ann's in slot 1 that has all up to mark 3.
    private func stage(_ registry: SessionRegistry) throws -> Stage {
        let stage = Stage(sessions: registry)
        try stage.tick(after: 10_000)
        #expect(try join(stage, 1) == nil)
        _ = try stage.watch { $0.deliverEvent(.boundary(3)) }
        let ping = try #require(stage.hub.acknowledgementPing(for: 1))
        #expect(stage.hub.receivePong(try ping.shown().dropFirst(5).utf8, from: 1))
        return stage
    }

    private func pass(_ seconds: Int64, _ stage: Stage, _ registry: SessionRegistry) throws {
        for _ in 0..<seconds {
            try stage.tick(after: 1000)
            registry.removeExpired(at: stage.now)
        }
    }

    /// With a window of 5 s and an outage of 9 s, who was cut off meanwhile lost 1,573 rows in silence.
    @Test(arguments: [
        (before: 100, during: 0, after: 19, isKept: true), (100, 0, 21, false), (0, 150, 119, true),
        (0, 150, 121, false),
    ]) func theWindowStandsStill(before: Int64, during: Int64, after: Int64, isKept: Bool) throws {
        let registry = SessionRegistry.ofTheFirst
        let stage = try stage(registry)
        if during == 0 { try stage.disconnect(1) }
        try pass(before, stage, registry)
        _ = try stage.watch { $0.feedChanged(isReady: false) }
        try pass(during, stage, registry)
        if during > 0 { try stage.disconnect(1) }
        try pass(150, stage, registry)
        _ = try stage.watch { $0.feedChanged(isReady: true) }
        try pass(after, stage, registry)
        #expect(try join(stage, 2) == (isKept ? .mark(3) : nil))
    }

    /// Each loop says it in its own time, and one may repeat what another said.
    @Test func itGoesOnWhenTheFeedIsReady() throws {
        let registry = SessionRegistry.ofTheFirst
        let stage = try stage(registry)
        try stage.disconnect(1)
        for isReady in [false, false, true, false, true, true] {
            registry.feedChanged(isReady: isReady, at: stage.now)
            try pass(10, stage, registry)
        }
        // It stood for 20 s and 10 s of these 60.
        try pass(89, stage, registry)
        #expect(try join(stage, 2) == .mark(3))
        try stage.disconnect(2)
        try pass(121, stage, registry)
        #expect(try join(stage, 3) == nil)
    }

    /// A hub that is started while Postgres is away: the window begins when somebody can come back.
    @Test(arguments: [(119, true), (121, false)]) func afterAStart(seconds: Int64, isKept: Bool) throws {
        let first = SessionRegistry.ofTheFirst
        first.startRecording {}
        _ = try stage(first)
        let registry = SessionRegistry(isFeedReady: false)
        registry.restoreSessions(first.takeChanged(upTo: 10))
        let stage = Stage(sessions: registry)
        try stage.tick(after: 10_000)
        // A stranger's is the first join, and as every other it is refused.
        stage.connect(9, subject: "bob")
        try stage.join("realtime:b", 9, RecoveryTests.config)
        try pass(300, stage, registry)
        _ = try stage.watch { $0.feedChanged(isReady: true) }
        try pass(seconds, stage, registry)
        #expect(try join(stage, 2) == (isKept ? .restart : nil))
    }

    /// Of too many the window runs on.
    @Test(arguments: [10, 11]) func anOutageOfDaysDoesNotTakeAllMemory(mostHeld: Int) throws {
        let registry = SessionRegistry(mostHeld: mostHeld)
        registry.nobodyIsFromBefore()
        let stage = Stage(sessions: registry)
        try stage.tick(after: 10_000)
        for slot in 1...11 {
            stage.connect(Slot(slot), subject: "user\(slot)")
            try stage.join("realtime:a", Slot(slot), RecoveryTests.config)
            for group in stage.subscribed { _ = try stage.watch { $0.changeSubscription(group, is: .live) } }
        }
        _ = try stage.watch { $0.feedChanged(isReady: false) }
        for slot in 1...10 { try stage.disconnect(Slot(slot)) }
        #expect(registry.endedSessions == 10)
        try stage.disconnect(11)
        try pass(300, stage, registry)
        #expect(registry.endedSessions == (mostHeld == 10 ? 0 : 11))
    }

    @Test func ofOneUserOnlySoManySessionsAreKept() throws {
        let registry = SessionRegistry.ofTheFirst
        let stage = try stage(registry)
        for _ in 0..<70 {
            try stage.disconnect(1)
            _ = try join(stage, 1)
        }
        #expect((1...64).contains(registry.endedSessions))
    }

    @Test func whoTriesOverAndOverTakesNoMemory() throws {
        let registry = SessionRegistry.ofTheFirst
        let stage = try stage(registry)
        _ = try stage.watch { $0.feedChanged(isReady: false) }
        try stage.disconnect(1)
        for _ in 0..<100 {
            #expect(try join(stage, 2) == .mark(3))
            let asked = stage.recoveries
            _ = try stage.watch { hub in for id in asked { hub.deliverEvent(.recovery(id, .unavailable)) } }
            try stage.disconnect(2)
            try pass(1, stage, registry)
        }
        #expect(registry.expectedEnds == 1)
    }
}
