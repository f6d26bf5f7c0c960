import Hub
import Testing
import Wire

/// Where those stand who may come back, as it is written down.
@Suite struct SessionPlacesTests {
    private let returning = ReturningTests()

    /// The writer's turn.
    @discardableResult private func write(_ registry: SessionRegistry, at now: HubTime) -> (
        places: [SessionRegistry.Place], proven: Int?
    ) {
        let proven = registry.surveyProgress(at: now)
        let changed = registry.takeChanged(upTo: 100)
        registry.isWritten(changed, successfully: true)
        return (changed.filter { $0.count > 0 }.map(\.place), proven)
    }

    private func recorded() -> SessionRegistry {
        let registry = SessionRegistry.ofTheFirst
        registry.startRecording {}
        return registry
    }

    @discardableResult private func join(
        _ stage: Stage, _ registry: SessionRegistry, _ slot: Slot, _ subject: String, mark: Int
    ) throws -> [String] {
        stage.connect(slot, subject: subject)
        _ = try stage.join("realtime:\(subject)", slot, ReturningTests.config)
        let group = try #require(stage.subscribed.first)
        let lines = try stage.watch { $0.changeSubscription(group, is: .live) }
        write(registry, at: stage.now)
        try stage.tick(after: 50)
        try returning.acknowledge(stage, slot, mark: mark)
        return lines
    }

    @Test func whoFollowsIsWrittenOnceAndWhoWasLostAgain() throws {
        let registry = recorded()
        let stage = Stage(sessions: registry)
        try stage.tick(after: 10_000)
        try join(stage, registry, 1, "ann", mark: 3)
        try join(stage, registry, 2, "bob", mark: 4)
        #expect(write(registry, at: stage.now) == ([], 3), "nobody moves for what is proven")
        try returning.acknowledge(stage, 1, mark: 5)
        #expect(write(registry, at: stage.now) == ([], 4))
        try stage.disconnect(2)
        try returning.acknowledge(stage, 1, mark: 9)
        #expect(write(registry, at: stage.now) == ([.at(.mark(4))], 9), "the lost one holds nobody back")
        #expect(write(registry, at: stage.now) == ([], 9))
    }

    @Test func whoLagsStandsAlone() throws {
        let registry = recorded()
        let stage = Stage(sessions: registry)
        try stage.tick(after: 10_000)
        try join(stage, registry, 1, "ann", mark: 3)
        try join(stage, registry, 2, "bob", mark: 4)
        var found: [SessionRegistry.Place] = []
        var proven: [Int?] = []
        for mark in 5..<45 {
            try stage.tick(after: 1000)
            try returning.acknowledge(stage, 2, mark: mark)
            let (places, last) = write(registry, at: stage.now)
            found += places
            proven.append(last)
        }
        #expect(found == [.at(.mark(3))], "written once, as long as it does not move")
        #expect(proven.first == 3 && proven.last == 44)
        // It comes to life.
        try returning.acknowledge(stage, 1, mark: 45)
        try returning.acknowledge(stage, 2, mark: 45)
        #expect(write(registry, at: stage.now) == ([.following(since: 45)], 45))
    }

    /// What stands there of who was lost is no more than it has, so that its join waits for nothing.
    @Test func whoComesBackWaitsForNoWrite() throws {
        let registry = recorded()
        let stage = Stage(sessions: registry)
        try stage.tick(after: 10_000)
        try join(stage, registry, 1, "ann", mark: 3)
        try join(stage, registry, 2, "bob", mark: 8)
        try stage.disconnect(1)
        #expect(write(registry, at: stage.now) == ([.at(.mark(3))], 8))
        stage.connect(3, subject: "ann")
        _ = try stage.join("realtime:ann", 3, ref: "9", ReturningTests.config)
        let group = try #require(stage.subscribed.first)
        #expect(try stage.watch { $0.changeSubscription(group, is: .live) }.contains { $0.hasPrefix("recover") })
        // Once more only where it stands, and when it is as far as the others.
        #expect(write(registry, at: stage.now) == ([], 8))
        try returning.acknowledge(stage, 3, mark: 9)
        #expect(write(registry, at: stage.now) == ([.following(since: 9)], 8))
    }

    /// What a loop has not heard of yet is from before a newcomer came, whoever was told of it.
    @Test func aNewcomerBeginsWhereTheFeedIs() throws {
        let registry = recorded()
        let stage = Stage(sessions: registry)
        try stage.tick(after: 10_000)
        registry.hasHandedOn(upTo: 7)
        stage.connect(1, subject: "ann")
        _ = try stage.join("realtime:a", 1, ReturningTests.config)
        #expect(registry.takeChanged(upTo: 10).map(\.place) == [.following(since: 7)])
    }

    @Test func afterARestartEverybodyGoesOnWhereItWas() throws {
        let first = recorded()
        _ = try returning.stage(first)
        let left = try #require(first.takeChanged(upTo: 10).first)
        let registry = SessionRegistry()
        registry.restoreSessions([.init(key: left.key, count: 1, place: .at(.restored("5:5:")))])
        let stage = Stage(sessions: registry)
        try stage.tick(after: 10_000)
        #expect(try returning.join(stage, 2, ref: 5).point == .restored("5:5:"))
    }
}
