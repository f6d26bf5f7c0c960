import Hub
import Testing
import Wire

/// Clients without a user, who all look alike, and whose new socket is read before their old one is known to be closed.
@Suite struct UserlessReturnTests {
    private let returning = ReturningTests()
    private static let mine: Slot = 1
    private static let comesBack: Slot = 2000

    /// Members in the slots from 1 on that have all up to mark 3; the others of them all up to mark 5, and mine not.
    private func stage(of count: Int) throws -> (Stage, SessionRegistry) {
        let registry = SessionRegistry.ofTheFirst
        registry.startRecording(whenAwaited: {})
        let stage = Stage(sessions: registry)
        for slot in 1...Slot(count) {
            stage.connect(slot)
            try stage.join("realtime:a", slot, ref: "1", ReturningTests.config)
            if let group = stage.subscribed.first { _ = try stage.watch { $0.changeSubscription(group, is: .live) } }
        }
        registry.isWritten(registry.takeChanged(upTo: 10), successfully: true)
        try stage.tick(after: 100)
        for slot in 1...Slot(count) { try returning.acknowledge(stage, slot, mark: 3) }
        _ = registry.surveyProgress(at: stage.now)
        try stage.tick(after: 10_000)
        _ = try stage.watch { $0.deliverEvent(.boundary(5)) }
        for slot in 1...Slot(count) where slot != Self.mine { try returning.acknowledge(stage, slot, mark: 5) }
        return (stage, registry)
    }

    /// Its session is written down at once.
    private func join(
        _ stage: Stage, _ registry: SessionRegistry, ref: Int
    ) throws -> (point: RecoveryPoint?, asked: [Slot]) {
        stage.connect(Self.comesBack)
        try stage.join("realtime:a", Self.comesBack, ref: "\(ref)", ReturningTests.config)
        let asked = stage.actions.flatMap {
            if case .ping(let places) = $0 { places.map(\.slot) } else { [Slot]() }
        }
        return (try point(stage, registry), asked)
    }

    /// Where it recovers from; what is to be written for that is.
    private func point(_ stage: Stage, _ registry: SessionRegistry) throws -> RecoveryPoint? {
        if let point = ReturningTests.point(stage) { return point }
        registry.isWritten(registry.takeChanged(upTo: 10), successfully: true)
        try stage.tick(after: 100)
        return ReturningTests.point(stage)
    }

    /// Where they are few, each is asked. Mine does not answer.
    @Test func ofFewEachIsAsked() throws {
        let (stage, registry) = try stage(of: 3)
        let joined = try join(stage, registry, ref: 2)
        #expect(joined.asked == [1, 2, 3])
        for slot in joined.asked where slot != Self.mine {
            let ping = try #require(stage.hub.acknowledgementPing(for: slot))
            #expect(stage.hub.receivePong(try ping.shown().dropFirst(5).utf8, from: slot))
        }
        try stage.tick(after: 1_010)
        #expect(try point(stage, registry) == .mark(3))
    }

    /// Where they are many none is asked, and whoever was certainly here before begins where the last of them stands.
    @Test(arguments: [18, 100]) func ofManyTheEarliestCounts(count: Int) throws {
        let (stage, registry) = try stage(of: count)
        let joined = try join(stage, registry, ref: 2)
        #expect(joined.asked.isEmpty && joined.point == .mark(3))
    }

    /// Where they are more than can be looked at, it begins where the last of them stood a second ago, whatever others have proven since.
    @Test func ofACrowdTheLastOneCounts() throws {
        let (stage, registry) = try stage(of: 1_100)
        try stage.tick(after: 20_000)
        _ = registry.surveyProgress(at: stage.now)
        #expect(try join(stage, registry, ref: 2).point == .mark(3))
    }

    /// It takes one of those who were lost: who comes for the first time afterwards is sent nothing of it.
    @Test(arguments: [3, 18]) func whoIsBackIsWaitedForNoLonger(count: Int) throws {
        let (stage, registry) = try stage(of: count)
        try stage.disconnect(Self.mine)
        let joined = try join(stage, registry, ref: 2)
        for slot in joined.asked {
            let ping = try #require(stage.hub.acknowledgementPing(for: slot))
            #expect(stage.hub.receivePong(try ping.shown().dropFirst(5).utf8, from: slot))
        }
        if joined.point == nil { _ = try stage.watch { $0.wake(at: stage.now) } }
        #expect(try joined.point ?? point(stage, registry) == .mark(3))
        #expect(registry.endedSessions == 0)
    }

    /// A stranger who says that he was here before, while somebody does not answer, takes nothing from him.
    @Test func whoSleepsKeepsItsSession() throws {
        let (stage, registry) = try stage(of: 3)
        _ = try join(stage, registry, ref: 1000)
        try stage.tick(after: 1_010)
        for slot in 1...3 as ClosedRange<Slot> { try stage.disconnect(slot) }
        #expect(registry.endedSessions == 3)
    }

    /// And is not kept waiting by strangers.
    @Test(arguments: [3, 18, 1_100]) func whoComesForTheFirstTimeIsSentNothing(count: Int) throws {
        let (stage, registry) = try stage(of: count)
        let joined = try join(stage, registry, ref: 1)
        #expect(joined.asked.isEmpty && joined.point == nil)
    }
}
