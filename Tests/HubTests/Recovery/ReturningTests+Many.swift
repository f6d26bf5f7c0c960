import Hub
import Testing
import Wire

/// Who is brought what where there are many who look alike, and where some come too late.
extension ReturningTests {
    /// Two that share a sign-in, and both are away: whoever comes first, for the other a session is left, for as
    /// long as its own would have been.
    @Test func twoWhoShareASignInBothComeBack() throws {
        let session = "phone"
        let stage = try stage(session: session)
        try join(stage, 2, ref: 1, session: session, alive: [1])
        try acknowledge(stage, 2, mark: 6)
        try stage.disconnect(1)
        try stage.tick(after: 20_000)
        try stage.disconnect(2)
        try stage.tick(after: 80_000)
        // What comes right behind such a jump of the clock may have waited.
        try stage.tick(after: 1_100)
        #expect(try join(stage, 3, ref: 1, session: session).point == .mark(3))
        try acknowledge(stage, 3, mark: 9)
        try stage.disconnect(3)
        try stage.tick(after: 30_000)
        #expect(try join(stage, 4, ref: 1, session: session).point == .mark(6), "it may be the second")
    }

    /// More than are kept one by one: whoever looks like them is brought it until the window is over.
    @Test func aHundredWithoutAUserComeBack() throws {
        let stage = Stage(sessions: .ofTheFirst)
        for slot in 1...100 as ClosedRange<Slot> {
            stage.connect(slot)
            _ = try stage.join("realtime:a", slot, ref: "1", Self.config)
            if let group = stage.subscribed.first { _ = try stage.watch { $0.changeSubscription(group, is: .live) } }
        }
        _ = try stage.watch { $0.deliverEvent(.boundary(3)) }
        for slot in 1...100 as ClosedRange<Slot> {
            let ping = try #require(stage.hub.acknowledgementPing(for: slot))
            #expect(stage.hub.receivePong(try ping.shown().dropFirst(5).utf8, from: slot))
        }
        for slot in 1...100 as ClosedRange<Slot> { try stage.disconnect(slot) }
        var missed = 0
        for slot in 101...200 as ClosedRange<Slot> {
            stage.connect(slot)
            if try point(ofJoining: slot, stage) != .mark(3) { missed += 1 }
            try acknowledge(stage, slot, mark: Int(slot))
        }
        #expect(missed == 0)
    }

    /// All who are asked answer.
    private func point(ofJoining slot: Slot, _ stage: Stage) throws -> RecoveryPoint? {
        _ = try stage.join("realtime:a", slot, ref: "9", Self.config)
        let asked = stage.actions.flatMap { if case .ping(let places) = $0 { places.map(\.slot) } else { [Slot]() } }
        var point = Self.point(stage)
        if let group = stage.subscribed.first {
            _ = try stage.watch { $0.changeSubscription(group, is: .live) }
            point = point ?? Self.point(stage)
        }
        for other in asked {
            let ping = try #require(stage.hub.acknowledgementPing(for: other))
            _ = try stage.watch { $0.receivePong(try ping.shown().dropFirst(5).utf8, from: other) }
        }
        _ = try stage.watch { $0.wake(at: stage.now) }
        return point ?? Self.point(stage)
    }

    /// A tab that slept for longer than the window comes for nothing that another one left.
    @Test func whoComesTooLateTakesNothingFromOneThatIsAway() throws {
        let stage = try stage()
        try join(stage, 2, ref: 1, alive: [1])
        try acknowledge(stage, 2, mark: 5)
        try stage.disconnect(1)
        try stage.tick(after: 121_000)
        // What comes right behind such a jump of the clock may have waited.
        try stage.tick(after: 1_100)
        try stage.disconnect(2)
        #expect(try join(stage, 3, ref: 9).point == .mark(5))
        try acknowledge(stage, 3, mark: 9)
        #expect(try join(stage, 4, ref: 9, alive: [3]).point == .mark(5), "the third was the one that slept")
        try acknowledge(stage, 4, mark: 12)
        for slot in [3, 4] as [Slot] { try stage.disconnect(slot) }
        #expect(try join(stage, 5, ref: 9).point == .mark(9))
        #expect(try join(stage, 6, ref: 9, alive: [5]).point == .mark(9))
    }

    /// Nothing remains of it where nobody else looks like it; one that came since and is away is another all the same.
    @Test func whoComesTooLateTakesNothingFromOneThatCameSince() throws {
        let stage = try stage()
        try stage.disconnect(1)
        try stage.tick(after: 121_000)
        try stage.tick(after: 1_100)
        #expect(try join(stage, 2, ref: 1).point == nil)
        try acknowledge(stage, 2, mark: 7)
        try stage.disconnect(2)
        #expect(try join(stage, 3, ref: 9).point == .mark(7))
        try acknowledge(stage, 3, mark: 12)
        #expect(try join(stage, 4, ref: 9, alive: [3]).point == .mark(7), "the third was the one that slept")
        try acknowledge(stage, 4, mark: 15)
        #expect(try join(stage, 5, ref: 9, alive: [3, 4]).point == nil, "both are back")
    }

    /// As any of those who flap may be the one that is lost: it may have been it that came, and one of the others that is away since.
    @Test func whoIsLostForGoodHoldsOthersBackForNoLongerThanItsWindow() throws {
        let stage = try stage()
        try join(stage, 2, ref: 1, alive: [1])
        try acknowledge(stage, 2, mark: 5)
        try stage.disconnect(1)
        let points = try (1...6).map { turn in
            try stage.disconnect(Slot(turn + 1))
            try stage.tick(after: 50_000)
            // What comes right behind such a jump of the clock may have waited.
            try stage.tick(after: 1_100)
            let point = try join(stage, Slot(turn + 2), ref: turn * 10).point
            try acknowledge(stage, Slot(turn + 2), mark: turn * 10)
            return point
        }
        #expect(points == [3, 3, 10, 20, 30, 40].map { .mark($0) })
    }

    /// Of two the first comes back, and is taken for the second, whose socket is silent; until that one is closed, the first one's window
    /// is over.
    @Test func whoIsTakenForOneThatIsOverLeavesItWhatIsItsOwn() throws {
        let stage = try stage()
        try join(stage, 2, ref: 1, alive: [1])
        try acknowledge(stage, 2, mark: 5)
        try stage.disconnect(1)
        try stage.tick(after: 100_000)
        _ = try stage.watch { $0.deliverEvent(.boundary(7)) }
        #expect(try join(stage, 3, ref: 9).asked == [2])
        try stage.tick(after: 1_100)
        #expect(Self.point(stage) == .mark(3))
        try acknowledge(stage, 3, mark: 9)
        try stage.tick(after: 30_000)
        try stage.disconnect(2)
        #expect(try join(stage, 4, ref: 9, alive: [3]).point == .mark(5))
    }
}
