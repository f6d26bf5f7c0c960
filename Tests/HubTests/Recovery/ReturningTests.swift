import Hub
import Synchronization
import Testing
import Wire

/// Who is brought what: clients that come back, and those that are new.
@Suite struct ReturningTests {
    static let config = RecoveryTests.config

    /// A join of ann's, and where it has to recover from; `asked` are the sockets that were asked whether they live, and
    /// those of `alive` answer.
    @discardableResult func join(
        _ stage: Stage, _ slot: Slot, ref: Int, session: String? = nil, isPage: Bool = false, alive: [Slot] = []
    ) throws -> (point: RecoveryPoint?, asked: [Slot], isAnswered: Bool) {
        stage.connect(slot, subject: "ann", session: session, isPage: isPage)
        var lines = try stage.join("realtime:a", slot, ref: "\(ref)", Self.config)
        let asked = stage.actions.flatMap {
            if case .ping(let places) = $0 { places.map(\.slot) } else { [Slot]() }
        }
        var point = Self.point(stage)
        if let group = stage.subscribed.first {
            lines += try stage.watch { $0.changeSubscription(group, is: .live) }
            point = point ?? Self.point(stage)
        }
        for other in asked where alive.contains(other) {
            let ping = try #require(stage.hub.acknowledgementPing(for: other))
            #expect(stage.hub.receivePong(try ping.shown().dropFirst(5).utf8, from: other))
            lines += try stage.watch { $0.wake(at: stage.now) }
            point = point ?? Self.point(stage)
        }
        return (point, asked, lines.contains { $0.contains("phx_reply") })
    }

    static func point(_ stage: Stage) -> RecoveryPoint? {
        stage.actions.compactMap { if case .recover(_, let question) = $0 { question.from } else { nil } }.first
    }

    /// All of it has arrived, up to the mark.
    func acknowledge(_ stage: Stage, _ slot: Slot, mark: Int) throws {
        if !stage.recoveries.isEmpty { try stage.catchUp() }
        _ = try stage.watch { $0.deliverEvent(.boundary(mark)) }
        let ping = try #require(stage.hub.acknowledgementPing(for: slot))
        #expect(stage.hub.receivePong(try ping.shown().dropFirst(5).utf8, from: slot))
    }

    /// A hub that nobody is from before, with a member of ann's in slot 1 that has all up to mark 3.
    func stage(_ registry: SessionRegistry = .ofTheFirst, session: String? = nil) throws -> Stage {
        let stage = Stage(sessions: registry)
        try stage.tick(after: 10_000)
        try join(stage, 1, ref: 1, session: session)
        try acknowledge(stage, 1, mark: 3)
        return stage
    }

    /// Refs tell nothing between two sockets: supabase-swift began them anew, and was denied 200 of 300 rows.
    @Test(arguments: [1, 9]) func aSocketThatDiesWithoutAWord(ref: Int) throws {
        let stage = try stage()
        _ = try stage.watch { $0.deliverEvent(.boundary(5)) }
        let joined = try join(stage, 2, ref: ref)
        #expect(joined.asked == [1] && !joined.isAnswered, "it may be the one that joins")
        try stage.tick(after: 990)
        #expect(Self.point(stage) == nil)
        try stage.tick(after: 20)
        #expect(Self.point(stage) == .mark(3))
    }

    @Test func whoAnswersIsSomebodyElse() throws {
        let stage = try stage()
        _ = try stage.watch { $0.deliverEvent(.boundary(5)) }
        #expect(try join(stage, 2, ref: 1).asked == [1])
        let ping = try #require(stage.hub.acknowledgementPing(for: 1))
        #expect(stage.hub.receivePong(try ping.shown().dropFirst(5).utf8, from: 1))
        let lines = try stage.watch { $0.wake(at: stage.now) }
        #expect(lines.contains { $0.contains("phx_reply") }, "nothing is waited for any more")
        #expect(Self.point(stage) == nil)
    }

    @Test func anAnswerToAnOlderPingProvesNoLife() throws {
        let stage = try stage()
        let early = try #require(stage.hub.acknowledgementPing(for: 1))
        _ = try stage.watch { $0.deliverEvent(.boundary(5)) }
        try join(stage, 2, ref: 1)
        _ = try stage.watch { $0.receivePong(try early.shown().dropFirst(5).utf8, from: 1) }
        try stage.tick(after: 1100)
        #expect(Self.point(stage) == .mark(3))
    }

    /// A browser that unloads a page closes with 1001.
    @Test func aPageThatIsReloaded() throws {
        let stage = try stage()
        for slot in 1...7 as ClosedRange<Slot> {
            _ = try stage.watch { $0.deliverEvent(.boundary(Int(slot) * 10)) }
            try stage.disconnect(slot, isUnloaded: true)
            _ = try stage.watch { $0.deliverEvent(.boundary(Int(slot) * 10 + 5)) }
            #expect(try join(stage, slot + 1, ref: 1, isPage: true).point == nil)
        }
    }

    @Test func theOtherTabsStayAsTheyAre() throws {
        let stage = try stage()
        try stage.disconnect(1)
        try join(stage, 2, ref: 1, isPage: true)
        try acknowledge(stage, 2, mark: 8)
        try stage.disconnect(2, isUnloaded: true)
        #expect(try join(stage, 3, ref: 2, isPage: true).point == .mark(3), "it is the first that comes back")
    }

    /// With or without a sign-in: what it came back for is not sent again.
    @Test(arguments: [nil, "phone"]) func whoFlapsIsNotSentTheSameAgain(session: String?) throws {
        let stage = try stage(session: session)
        for turn in 1...5 {
            try stage.disconnect(Slot(turn))
            #expect(
                try join(stage, Slot(turn) + 1, ref: turn + 1, session: session).point
                    == .mark(turn * 10 - (turn == 1 ? 7 : 0)))
            try acknowledge(stage, Slot(turn) + 1, mark: turn * 10 + 10)
        }
    }

    @Test func whoFlapsWithoutAWordIsNotEither() throws {
        let stage = try stage()
        for turn in 1...4 {
            _ = try stage.watch { $0.deliverEvent(.boundary(turn * 10 + 5)) }
            try join(stage, Slot(turn) + 1, ref: turn + 1)
            try stage.tick(after: 1100)
            #expect(Self.point(stage) == .mark(turn == 1 ? 3 : turn * 10))
            try acknowledge(stage, Slot(turn) + 1, mark: turn * 10 + 10)
            try stage.disconnect(Slot(turn))
        }
    }

    /// Its refs begin anew: only the sign-in of a device tells that it is the one that was there.
    @Test(arguments: [(nil, 3), ("phone", 8)] as [(String?, Int)])
    func whoFlapsAndBeginsAnew(session: String?, mark: Int) throws {
        let stage = try stage(session: session)
        try stage.disconnect(1)
        #expect(try join(stage, 2, ref: 1, session: session).point == .mark(3))
        try acknowledge(stage, 2, mark: 8)
        try stage.disconnect(2)
        #expect(try join(stage, 3, ref: 1, session: session).point == .mark(mark))
    }

    /// Two devices without a sign-in, and a third that is new while they are away.
    @Test func newOnesTakeNothingFromThoseWhoAreAway() throws {
        let stage = try stage()
        try join(stage, 2, ref: 1)
        try acknowledge(stage, 2, mark: 6)
        for slot in [1, 2] as [Slot] { try stage.disconnect(slot) }
        #expect(try join(stage, 3, ref: 1).point == .mark(3))
        try acknowledge(stage, 3, mark: 9)
        try stage.disconnect(3)
        #expect(try join(stage, 4, ref: 7).point == .mark(3))
        #expect(try join(stage, 5, ref: 7, alive: [4]).point == .mark(3))
    }

    @Test func severalDevicesComeBackInAnyOrder() throws {
        let stage = try stage()
        try join(stage, 2, ref: 1)
        try acknowledge(stage, 2, mark: 6)
        for slot in [1, 2] as [Slot] { try stage.disconnect(slot) }
        for slot in [3, 4] as [Slot] {
            #expect(try join(stage, slot, ref: 2, alive: [3]).point == .mark(3))
            try acknowledge(stage, slot, mark: 9)
        }
        try stage.disconnect(4)
        #expect(try join(stage, 5, ref: 3, alive: [3]).point == .mark(9), "both are back")
    }

    /// A page that was hidden, and is shown again, has its state and counts on; one that was loaded begins anew, and so do others
    /// of the user, whose refs are not as far.
    @Test(arguments: [(1, nil), (4, nil), (5, .mark(3))] as [(Int, RecoveryPoint?)])
    func onlyAPageThatCountsOnComesBackForWhatItLeft(ref: Int, point: RecoveryPoint?) throws {
        let stage = try stage()
        try stage.say(#"["1","4","realtime:a","broadcast",{}]"#, from: 1)
        try stage.disconnect(1, isUnloaded: true)
        _ = try stage.watch { $0.deliverEvent(.boundary(5)) }
        #expect(try join(stage, 2, ref: ref, isPage: true).point == point)
        // It is not held back for anybody, and has its own.
        try acknowledge(stage, 2, mark: 7)
        try stage.disconnect(2)
        #expect(try join(stage, 3, ref: ref + 1, isPage: true).point == (ref == 4 ? .mark(3) : .mark(7)))
    }

    /// The C# client joins without a token, and says who it is when it is answered.
    @Test func aTokenSoonAfterTheJoinIsTheJoins() throws {
        let stage = try stage()
        try stage.disconnect(1)
        _ = try stage.watch { $0.deliverEvent(.boundary(5)) }
        stage.connect(2)
        _ = try stage.join("realtime:a", 2, ref: "1", Self.config)
        let group = try #require(stage.subscribed.first)
        _ = try stage.watch { $0.changeSubscription(group, is: .live) }
        #expect(Self.point(stage) == nil)
        let token = #"["1","2","realtime:a","access_token",{"access_token":"good anon 9000 ann"}]"#
        try stage.say(token, from: 2)
        #expect(Self.point(stage) == .mark(3))
        try acknowledge(stage, 2, mark: 8)
        // A later one is a new token and no more.
        try stage.say(token.replacing("ann", with: "bob"), from: 2)
        #expect(Self.point(stage) == nil)
        try stage.disconnect(2)
        #expect(try join(stage, 3, ref: 1).point == .mark(3), "nothing told that ann is back")
    }

    @Test func aTokenLongAfterTheJoinIsAnotherUsers() throws {
        let stage = try stage()
        try stage.disconnect(1)
        _ = try stage.watch { $0.deliverEvent(.boundary(5)) }
        stage.connect(2)
        _ = try stage.join("realtime:a", 2, ref: "1", Self.config)
        let group = try #require(stage.subscribed.first)
        _ = try stage.watch { $0.changeSubscription(group, is: .live) }
        try stage.tick(after: 10_001)
        try stage.say(
            #"["1","2","realtime:a","access_token",{"access_token":"good anon 9000 ann"}]"#, from: 2)
        #expect(Self.point(stage) != .mark(3))
    }

    // MARK: After a restart

    private func key(_ registry: SessionRegistry) throws -> SessionRegistry.Record {
        let changed = registry.takeChanged(upTo: 10)
        registry.isWritten(changed, successfully: true)
        return try #require(changed.first)
    }

    @Test func whoeverWasThereIsBroughtWhatItMissedAndNobodyElse() throws {
        let first = SessionRegistry.ofTheFirst
        first.startRecording {}
        _ = try stage(first)
        let left = try key(first)
        #expect(left.count == 1)
        // The same in every process: SHA-256, worked out by another program.
        #expect(left.key.high == 0x216e79e68bdcd5ee && left.key.low == 0xd9b3ed849ca9d349)
        let registry = SessionRegistry()
        registry.restoreSessions([left])
        let stage = Stage(sessions: registry)
        try stage.tick(after: 10_000)
        #expect(try join(stage, 2, ref: 5).point == .restart)
        try acknowledge(stage, 2, mark: 4)
        try stage.disconnect(2)
        #expect(try join(stage, 3, ref: 6).point == .mark(4), "it was one, and is back")
        stage.connect(4, subject: "stranger")
        _ = try stage.join("realtime:a", 4, Self.config)
        #expect(Self.point(stage) == nil)
    }

    @Test func whereNobodyIsKnownAnybodyMayHaveBeenThere() throws {
        let stage = Stage(sessions: SessionRegistry())
        #expect(try join(stage, 1, ref: 1).point == .restart)
    }

    @Test func aJoinIsAnsweredWhenItIsWrittenDown() throws {
        let registry = SessionRegistry.ofTheFirst
        let calls = Mutex(0)
        registry.startRecording { calls.withLock { $0 += 1 } }
        let stage = Stage(sessions: registry)
        #expect(try !join(stage, 1, ref: 1).isAnswered)
        #expect(calls.withLock { $0 } == 1)
        _ = try key(registry)
        let lines = try stage.tick(after: 10)
        #expect(lines.contains { $0.contains("phx_reply") })
        #expect(registry.isComplete(at: stage.now))
        // Who comes back is known already.
        try stage.disconnect(1)
        #expect(try join(stage, 2, ref: 2).point != nil)
        #expect(!registry.hasChanged)
    }

    // MARK: On the way

    private func change(_ group: ChangeGroupID, _ row: Int) -> ChangeDelivery {
        ChangeDelivery(
            group: group, operation: .insert, ids: [1], data: Array(String(row).utf8), cursor: "after \(row)")
    }

    /// A second break goes on where the first recovery was.
    @Test func whatArrivedOfARecoveryIsNotSentAgain() throws {
        let stage = try stage()
        try stage.disconnect(1)
        stage.connect(2, subject: "ann")
        _ = try stage.join("realtime:a", 2, ref: "2", Self.config)
        let group = try #require(stage.subscribed.first)
        _ = try stage.watch { $0.changeSubscription(group, is: .live) }
        let id = try #require(stage.recoveries.first)
        _ = try stage.watch { $0.deliverEvent(.recovery(id, .began(.resumed))) }
        _ = try stage.watch { $0.deliverEvent(.recovery(id, .changes([change(group, 1), change(group, 2)]))) }
        let ping = try #require(stage.hub.acknowledgementPing(for: 2))
        _ = try stage.watch { $0.deliverEvent(.recovery(id, .changes([change(group, 3)]))) }
        #expect(stage.hub.receivePong(try ping.shown().dropFirst(5).utf8, from: 2))
        try stage.disconnect(2)
        #expect(try join(stage, 3, ref: 3).point == .cursor("after 2"))
        // Where it may be another's, it is sent from where that one began.
        try stage.disconnect(3)
        try join(stage, 4, ref: 1)
        try acknowledge(stage, 4, mark: 9)
        try stage.disconnect(4)
        #expect(try join(stage, 5, ref: 9).point == .mark(3))
    }

    /// Of two that are away one was halfway. Whoever comes first, the other is not taken for the one that was.
    @Test func theWayOfOneIsNotThatOfAnother() throws {
        let stage = try stage()
        try stage.disconnect(1)
        stage.connect(2, subject: "ann")
        _ = try stage.join("realtime:a", 2, ref: "2", Self.config)
        let group = try #require(stage.subscribed.first)
        _ = try stage.watch { $0.changeSubscription(group, is: .live) }
        let id = try #require(stage.recoveries.first)
        _ = try stage.watch { $0.deliverEvent(.recovery(id, .began(.resumed))) }
        _ = try stage.watch { $0.deliverEvent(.recovery(id, .changes([change(group, 1)]))) }
        // A new one, which is brought nothing, and stays where it began.
        try join(stage, 3, ref: 1, alive: [2])
        let ping = try #require(stage.hub.acknowledgementPing(for: 2))
        #expect(stage.hub.receivePong(try ping.shown().dropFirst(5).utf8, from: 2))
        try stage.disconnect(2)
        try stage.disconnect(3)
        #expect(try join(stage, 4, ref: 3).point == .mark(3))
        #expect(try join(stage, 5, ref: 3, alive: [4]).point == .mark(3))
    }

    /// A token that is refreshed right behind a row does not bring it again.
    @Test func aNewTokenGoesOnAtTheLastChange() throws {
        let stage = Stage(sessions: .ofTheFirst)
        stage.connect(1, subject: "ann")
        _ = try stage.join("realtime:a", 1, ref: "1", Self.config)
        let group = try #require(stage.subscribed.first)
        _ = try stage.watch { $0.changeSubscription(group, is: .live) }
        _ = try stage.watch { $0.deliverEvent(.boundary(3)) }
        _ = try stage.watch { $0.deliverEvent(.change(self.change(group, 7))) }
        _ = try stage.say(#"["1","5","realtime:a","access_token",{"access_token":"good anon 8000"}]"#, from: 1)
        #expect(Self.point(stage) == .cursor("after 7"))
    }

    /// Unless something before that change waits for a policy, for whomever.
    @Test(arguments: [true, false]) func aNewTokenPassesNothingThatWaits(hasPassed: Bool) throws {
        let stage = Stage(sessions: .ofTheFirst)
        stage.connect(1, subject: "ann")
        _ = try stage.join("realtime:a", 1, ref: "1", Self.config)
        let group = try #require(stage.subscribed.first)
        _ = try stage.watch { $0.changeSubscription(group, is: .live) }
        _ = try stage.watch { $0.deliverEvent(.boundary(3)) }
        if hasPassed { _ = try stage.watch { $0.deliverEvent(.change(self.change(group, 6))) } }
        _ = try stage.watch { $0.deliverEvent(.withheld) }
        _ = try stage.watch { $0.deliverEvent(.change(self.change(group, 8))) }
        _ = try stage.say(#"["1","5","realtime:a","access_token",{"access_token":"good anon 8000"}]"#, from: 1)
        #expect(Self.point(stage) == (hasPassed ? .cursor("after 6") : .mark(3)))
    }

    /// What waits for one client may be all that came, and is not there to be seen by who takes its place.
    @Test func whatWaitsIsMissedByWhoTakesTheReadersPlace() throws {
        let stage = try stage()
        #expect(try join(stage, 2, ref: 5).asked == [1] && Self.point(stage) == nil)
        try stage.tick(after: 1100)
        #expect(Self.point(stage) == nil, "nothing came")
        _ = try stage.watch { $0.deliverEvent(.withheld) }
        try join(stage, 3, ref: 9)
        try stage.tick(after: 1100)
        #expect(Self.point(stage) == .mark(3))
    }

    // MARK: Where changes are gone

    @Test func whoIsToldOfAGapJoinsAgainFromBeforeIt() throws {
        let stage = try stage()
        stage.connect(2, subject: "bob")
        _ = try stage.join("realtime:b", 2, "{}")
        let lines = try stage.watch { $0.deliverEvent(.gap) }
        #expect(lines.contains { $0.hasPrefix("1 ← ") && $0.contains("phx_error") && $0.contains("ChangesLost") })
        #expect(!lines.contains { $0.hasPrefix("2 ← ") }, "who hears no row changes lacks none")
        _ = try stage.watch { $0.deliverEvent(.boundary(5)) }
        try stage.disconnect(1)
        #expect(try join(stage, 3, ref: 9).point == .mark(3))
    }
}
