import Hub
import Testing
import Wire

/// Clients that move on: whose sessions of other hubs are claimed, and which end by that.
extension SessionsElsewhereTests {
    static let claimable = SessionRegistry.Elsewhere(node: "hub2", snapshot: "5:5:", soughtAt: "then")

    /// A client whose refs go on, and that was sent what it missed.
    private func comesBack(_ list: Written, _ others: [SessionRegistry.Elsewhere], ref: String = "9") throws -> Stage {
        let stage = Stage(sessions: list.registry)
        stage.connect(1, subject: "ann")
        try stage.join("realtime:a", 1, ref: ref, RecoveryTests.config)
        let group = try #require(stage.subscribed.first)
        _ = try stage.watch { $0.changeSubscription(group, is: .live) }
        list.write(others)
        list.answer { $0.withCursor("x.1") }
        try stage.tick(after: 50)
        try stage.catchUp()
        return stage
    }

    /// The writer's turn, and whose sessions it claims.
    private func claims(_ list: Written, _ stage: Stage) -> [String] {
        _ = list.registry.surveyProgress(at: stage.now)
        list.write()
        return list.registry.takeClaims(at: stage.now).map { "\($0.node) \($0.soughtAt)" }
    }

    private func proves(_ stage: Stage) {
        stage.hub.receivePong("1".utf8, from: 1)
    }

    /// Or it would be sent the same again by every hub that it comes to.
    @Test func whoLacksNothingClaimsWhatAnotherHubKeeps() throws {
        let list = Written()
        let stage = try comesBack(list, [Self.claimable])
        try stage.tick(after: 4000)
        proves(stage)
        #expect(claims(list, stage).isEmpty, "who was lost with it may be on its way")
        try stage.tick(after: 1000)
        #expect(claims(list, stage) == ["hub2 then"])
        #expect(claims(list, stage).isEmpty, "once")
    }

    @Test func whoHasProvenNothingClaimsNothing() throws {
        let list = Written()
        let stage = try comesBack(list, [Self.claimable])
        try stage.tick(after: 60_000)
        #expect(claims(list, stage).isEmpty)
        proves(stage)
        #expect(list.registry.takeClaims(at: stage.now).isEmpty, "what is written of it is another place")
        #expect(claims(list, stage) == ["hub2 then"])
    }

    @Test func whoWasLostBeforeItHadProvenAnythingClaimsNothing() throws {
        let list = Written()
        let stage = try comesBack(list, [Self.claimable])
        try stage.disconnect(1)
        try stage.tick(after: 60_000)
        #expect(claims(list, stage).isEmpty)
    }

    /// Never one that may be somebody else's.
    @Test(arguments: [
        ("1", [claimable]), ("9", [claimable, other]), ("9", [other]),
        ("9", [claimable, .init(node: "hub3", snapshot: "5:5:", soughtAt: "then")]),
    ])
    func whoMayHaveBeenElsewhereClaimsNothing(ref: String, others: [SessionRegistry.Elsewhere]) throws {
        let list = Written()
        let stage = try comesBack(list, others, ref: ref)
        try stage.tick(after: 10_000)
        proves(stage)
        #expect(claims(list, stage).isEmpty)
    }

    @Test func whoWasHereClaimsNothingElsewhere() throws {
        let list = Written()
        let (stage, _) = try live(list)
        try stage.disconnect(1)
        list.write()
        stage.connect(2, subject: "ann")
        try stage.join("realtime:a", 2, ref: "9", RecoveryTests.config)
        let group = try #require(stage.subscribed.first)
        _ = try stage.watch { $0.changeSubscription(group, is: .live) }
        list.write([Self.claimable])
        list.answer { $0.withCursor("x.1") }
        try stage.tick(after: 50)
        try stage.catchUp()
        try stage.tick(after: 10_000)
        stage.hub.receivePong("1".utf8, from: 2)
        #expect(claims(list, stage).isEmpty)
    }

    @Test func whatIsClaimedEndsIfItWasLostByThen() throws {
        let list = Written()
        let (stage, key) = try live(list)
        let then = stage.now.monotonic
        func isThere() -> Bool { list.registry.whereabouts(of: [key], at: stage.now) != [.nobody] }
        list.registry.endClaimed([(key, then)])
        #expect(isThere(), "it lives")
        try stage.tick(after: 10)
        try stage.disconnect(1)
        list.registry.endClaimed([(key, then)])
        #expect(isThere(), "it was lost later, and is somebody else's")
        let changed = list.registry.takeChanged(upTo: 10)
        #expect(changed.map(\.lostAt) == [stage.now.monotonic])
        list.registry.isWritten(changed, successfully: true)
        list.registry.endClaimed([(key, stage.now.monotonic)])
        #expect(!isThere())
        #expect(list.registry.takeChanged(upTo: 10).map(\.count) == [0])
    }

    /// Its own was forgotten; that of another that looks like it and was lost since is not its.
    @Test func whoComesTooLateToAnotherHubClaimsNothing() throws {
        let list = Written()
        let (stage, key) = try live(list)
        func isThere() -> Bool { list.registry.whereabouts(of: [key], at: stage.now) != [.nobody] }
        try stage.disconnect(1)
        list.write()
        try stage.tick(after: 121_000)
        list.registry.removeExpired(at: stage.now)
        list.write()
        #expect(!isThere())
        _ = try join(stage, 2)
        list.write()
        try stage.tick(after: 10)
        try stage.disconnect(2)
        #expect(list.registry.takeChanged(upTo: 10).map(\.lostAt) == [nil])
        list.registry.endClaimed([(key, stage.now.monotonic)])
        #expect(isThere(), "it was the first that went elsewhere")
        list.registry.endClaimed([(key, stage.now.monotonic)])
        #expect(!isThere())
    }

    @Test func ofSeveralNoneIsClaimed() throws {
        let registry = SessionRegistry()
        let keys = (1...3).map { RecoveryKey(high: 1, low: $0) }
        registry.restoreSessions(
            [1, 2, 1].enumerated().map { SessionRegistry.Record(key: keys[$0], count: $1, lostAt: $0 == 2 ? 9 : 5) })
        registry.endClaimed(keys.map { ($0, 5) })
        let left = registry.whereabouts(of: keys, at: Stage.start)
        #expect(left == [.nobody, .from(.restart), .from(.restart)])
    }
}
