import Hub
import Testing
import Wire

/// Members that come back: what is asked of the feed for them, and in which order they hear what.
@Suite struct RecoveryTests {
    static let config = #"{"postgres_changes":[{"event":"*","schema":"public","table":"todos"}]}"#
    private static let live = #"{"message":"Subscribed to PostgreSQL"#

    /// A hub that has heard of mark 3, with a member of ann's in slot 1 that was live all the time.
    private func stage(sessions registry: SessionRegistry = SessionRegistry()) throws -> Stage {
        let stage = Stage(sessions: registry)
        stage.connect(1, subject: "ann")
        try stage.join("realtime:a", 1, ref: "1", Self.config)
        let group = try #require(stage.subscribed.first)
        _ = try stage.watch { $0.changeSubscription(group, is: .live) }
        try stage.catchUp()
        stage.hub.receivePong("1".utf8, from: 1)
        _ = try stage.watch { $0.deliverEvent(.boundary(3)) }
        return stage
    }

    private func change(_ group: ChangeGroupID, _ text: String, cursor: String = "") -> ChangeDelivery {
        ChangeDelivery(group: group, operation: .insert, ids: [1], data: Array(text.utf8), cursor: cursor)
    }

    /// The group that the only recovery among the last actions is for.
    private func question(_ stage: Stage) throws -> (RecoveryID, RecoveryQuestion) {
        try #require(
            stage.actions.compactMap { if case .recover(let id, let question) = $0 { (id, question) } else { nil } }
                .first)
    }

    private func isSubscribed(_ lines: [String]) -> Bool { lines.contains { $0.contains("Subscribed to PostgreSQL") } }

    @Test func theMissedComesBetweenTheReplyAndTheLive() throws {
        let stage = try stage()
        try stage.disconnect(1)
        stage.connect(2, subject: "ann")
        let asked = try stage.join("realtime:a", 2, ref: "7", Self.config)
        #expect(asked.contains { $0.hasPrefix("subscribe") })
        let group = try #require(stage.subscribed.first)
        let live = try stage.watch { $0.changeSubscription(group, is: .live) }
        let (id, question) = try question(stage)
        #expect(live == ["recover 0.\(group.serial) restart"])
        #expect(question.claims.subject == "ann")

        let before = try stage.watch { $0.deliverEvent(.change(self.change(group, "0"))) }
        #expect(before.isEmpty)
        let began = try stage.watch { $0.deliverEvent(.recovery(id, .began(.resumed))) }
        #expect(began.count == 1 && began[0].contains("phx_reply") && !began[0].contains("resumed"))
        let missed = try stage.watch {
            $0.deliverEvent(.recovery(id, .changes([self.change(group, "1", cursor: "x.1")])))
        }
        #expect(missed == [#"2 ← [null,null,"realtime:a","postgres_changes",{"ids":[1],"data":1,"cursor":"x.1"}]"#])
        let between = try stage.watch { $0.deliverEvent(.change(self.change(group, "2"))) }
        #expect(between.isEmpty)
        let started = try stage.watch { $0.deliverEvent(.recovery(id, .caughtUp(cursor: "c"))) }
        #expect(isSubscribed(started) && started.last == "2 ← ping 1")
        let after = try stage.watch { $0.deliverEvent(.change(self.change(group, "3"))) }
        #expect(after == [#"2 ⇐ [null,null,"realtime:a","postgres_changes",{"ids":[1],"data":3}]"#])
    }

    @Test func whoLeavesMissesNothing() throws {
        let stage = try stage()
        try stage.say(#"["1","2","realtime:a","phx_leave",{}]"#, from: 1)
        try stage.tick(after: 121_000)
        let lines = try stage.join("realtime:a", 1, ref: "3", Self.config)
        #expect(!lines.contains { $0.hasPrefix("recover") })
        let group = try #require(stage.subscribed.first)
        let live = try stage.watch { $0.changeSubscription(group, is: .live) }
        #expect(isSubscribed(live))
    }

    @Test func acknowledgementsMoveThePoint() throws {
        let stage = try stage()
        try stage.tick(after: 121_000)
        let ping = try #require(stage.hub.acknowledgementPing(for: 1))
        #expect(try ping.shown() == "ping 2")
        _ = try stage.watch { $0.deliverEvent(.boundary(5)) }
        stage.hub.receivePong("1".utf8, from: 1)
        stage.hub.receivePong("2".utf8, from: 1)
        try stage.disconnect(1)
        #expect(try point(of: "ann", stage) == .mark(3))
    }

    @Test func anAnsweredCloseProvesAll() throws {
        let stage = try stage()
        try stage.tick(after: 121_000)
        _ = try stage.watch { $0.deliverEvent(.boundary(5)) }
        stage.hub.isClosing(1)
        _ = try stage.watch { $0.deliverEvent(.boundary(6)) }
        stage.hub.closeAnswered(1)
        try stage.disconnect(1)
        #expect(try point(of: "ann", stage) == .mark(5))
    }

    @Test func whereAllIsAcknowledgedTheMarkIsThePoint() throws {
        let stage = try stage()
        try stage.tick(after: 121_000)
        stage.hub.nothingUnacknowledged(of: 1)
        try stage.disconnect(1)
        #expect(try point(of: "ann", stage) == .mark(3))
        // Somebody else starts at the present, and so does whoever asks for something else.
        #expect(try point(of: "bob", stage) == nil)
        #expect(try point(of: "ann", stage, topic: "realtime:b") == nil)
    }

    /// Whoever comes back a second time is not brought the first loss again: its refs count on.
    @Test(arguments: [(nil, RecoveryPoint.mark(8)), ("phone", .mark(8))])
    func whoComesBackAgain(session: String?, point: RecoveryPoint) throws {
        let stage = Stage(sessions: .ofTheFirst)
        for (slot, mark) in [(1, 3), (2, 8)] as [(Slot, Int)] {
            stage.connect(slot, subject: "ann", session: session)
            _ = try stage.join("realtime:a", slot, ref: "\(slot)", Self.config)
            if let group = stage.subscribed.first { _ = try stage.watch { $0.changeSubscription(group, is: .live) } }
            try stage.catchUp()
            _ = try stage.watch { $0.deliverEvent(.boundary(mark)) }
            stage.hub.nothingUnacknowledged(of: slot)
            if let ping = stage.hub.acknowledgementPing(for: slot) {
                stage.hub.receivePong(try ping.shown().dropFirst(5).utf8, from: slot)
            }
            try stage.disconnect(slot)
        }
        #expect(try self.point(of: "ann", stage, session: session) == point)
    }

    @Test func aWindowThatIsOver() throws {
        let stage = try stage()
        stage.hub.nothingUnacknowledged(of: 1)
        try stage.disconnect(1)
        try stage.tick(after: 120_001)
        #expect(try point(of: "ann", stage) == nil)
    }

    @Test func aClientThatKnowsItsCursor() throws {
        let stage = try stage()
        try stage.tick(after: 121_000)
        stage.connect(2, subject: "ann")
        let config = Self.config.dropLast() + #","resume":{"cursor":"abc.1"}}"#
        let lines = try stage.join("realtime:a", 2, ref: "1", String(config))
        #expect(lines.contains { $0.hasSuffix(#"cursor("abc.1")"#) })
        let (id, _) = try question(stage)
        let began = try stage.watch { $0.deliverEvent(.recovery(id, .began(.refused(.tooOld)))) }
        #expect(began.first?.contains(#""resumed":false,"reason":"The cursor is older than"#) == true)
        let end = try stage.watch { $0.deliverEvent(.recovery(id, .caughtUp(cursor: "now.9"))) }
        #expect(end.first?.contains(#""cursor":"now.9""#) == true)
    }

    /// It is told so once, behind the reply and before what is there yet, and its channel goes on.
    @Test func aClientWithoutACursorIsToldOfALossOnce() throws {
        let lost = #""status":"ok","message":"ChangesLost: Changes were deleted before they were delivered; load the"#
        let stage = try stage()
        try stage.disconnect(1)
        stage.connect(2, subject: "ann")
        try stage.join("realtime:a", 2, ref: "7", Self.config)
        let group = try #require(stage.subscribed.first)
        _ = try stage.watch { $0.changeSubscription(group, is: .live) }
        let (id, _) = try question(stage)
        let began = try stage.watch { $0.deliverEvent(.recovery(id, .began(.refused(.tooOld)))) }
        #expect(began.count == 2 && began[0].contains("phx_reply") && !began[0].contains("resumed"), "\(began)")
        #expect(began.last?.contains(lost) == true, "\(began)")
        let rest = try stage.watch {
            $0.deliverEvent(.recovery(id, .changes([self.change(group, "1", cursor: "x.1")])))
        }
        #expect(rest.count == 1)
        let started = try stage.watch { $0.deliverEvent(.recovery(id, .caughtUp(cursor: "c"))) }
        #expect(isSubscribed(started) && !started.contains { $0.contains("ChangesLost") })

        // With a new token it asks anew, and no reply can say what came of that.
        try stage.say(#"["7","8","realtime:a","access_token",{"access_token":"good anon 8000"}]"#, from: 2)
        if let other = stage.subscribed.first { _ = try stage.watch { $0.changeSubscription(other, is: .live) } }
        let (next, _) = try question(stage)
        let told = try stage.watch { $0.deliverEvent(.recovery(next, .began(.refused(.tooOld)))) }
        #expect(told.count == 1 && told.first?.contains(lost) == true, "\(told)")
    }

    /// No reply tells of it, so that it makes no difference whether the client has a cursor.
    @Test(arguments: [false, true]) func changesThatCouldNotBeRecordedAreToldToWhoRecovers(hasCursor: Bool) throws {
        let stage = try stage()
        try stage.disconnect(1)
        stage.connect(2, subject: "ann")
        let config = hasCursor ? String(Self.config.dropLast() + #","resume":{"cursor":"abc.1"}}"#) : Self.config
        try stage.join("realtime:a", 2, ref: "7", config)
        if let group = stage.subscribed.first { _ = try stage.watch { $0.changeSubscription(group, is: .live) } }
        let (id, question) = try question(stage)
        let began = try stage.watch { $0.deliverEvent(.recovery(id, .began(.resumed))) }
        #expect(began.count == 1 && began.contains { $0.contains(#""resumed":true"#) } == hasCursor, "\(began)")
        let told = try stage.watch { $0.deliverEvent(.recovery(id, .changesLost)) }
        #expect(told.count == 1 && told.first?.contains(#""status":"ok","message":"ChangesLost: "#) == true, "\(told)")
        let change = change(question.group, "1", cursor: "x.1")
        #expect(try stage.watch { $0.deliverEvent(.recovery(id, .changes([change]))) }.count == 1)
        let started = try stage.watch { $0.deliverEvent(.recovery(id, .caughtUp(cursor: "c"))) }
        #expect(isSubscribed(started) && !started.contains { $0.contains("ChangesLost") })
    }

    @Test func aNewTokenGivesUpNothing() throws {
        let stage = try stage()
        let lines = try stage.say(#"["1","5","realtime:a","access_token",{"access_token":"good anon 8000"}]"#, from: 1)
        #expect(lines.contains { $0.hasPrefix("recover") && $0.hasSuffix("mark(3)") }, "\(lines)")
    }

    /// A hub without a past, with a member in slot 2 that is being brought what it missed since mark 0.
    private func stageOfOneWhoRecovers() throws -> (Stage, ChangeGroupID, RecoveryID) {
        let stage = try stage(sessions: .ofTheFirst)
        try stage.disconnect(1)
        stage.connect(2, subject: "ann")
        try stage.join("realtime:a", 2, ref: "7", Self.config)
        let group = try #require(stage.subscribed.first)
        _ = try stage.watch { $0.changeSubscription(group, is: .live) }
        let (id, _) = try question(stage)
        _ = try stage.watch { $0.deliverEvent(.recovery(id, .began(.resumed))) }
        return (stage, group, id)
    }

    /// A socket so slow that live changes passed its member by goes on where the feed had stopped telling it.
    @Test func whoIsPassedByAsksAgain() throws {
        let (stage, group, first) = try stageOfOneWhoRecovers()
        let again = try stage.watch { $0.deliverEvent(.recovery(first, .passedBy(since: "c.1"))) }
        let (second, asked) = try question(stage)
        #expect(again.count == 1 && asked.from == .cursor("c.1") && second != first)
        #expect(
            try stage.watch { $0.deliverEvent(.change(self.change(group, "5"))) }.isEmpty, "it is in no audience yet")
        #expect(try stage.watch { $0.deliverEvent(.recovery(first, .caughtUp(cursor: "c.2"))) }.isEmpty)
        #expect(
            try stage.watch { $0.deliverEvent(.recovery(second, .began(.resumed))) }.isEmpty, "one reply to one join")
        let started = try stage.watch { $0.deliverEvent(.recovery(second, .caughtUp(cursor: "c.3"))) }
        #expect(isSubscribed(started))

        // Lost once more, it starts where it would have before: nothing of it is acknowledged.
        try stage.disconnect(2)
        #expect(try point(of: "ann", stage) == .mark(0))
    }

    /// Two devices of one user: the first is back already, and lost once more, when the second comes.
    @Test func whatOneDeviceHasSaysNothingOfTheOther() throws {
        let stage = try stage()
        stage.hub.nothingUnacknowledged(of: 1)
        try stage.disconnect(1)
        #expect(try point(of: "ann", stage) == .restart)
        // Where no hub was before, only this one's sessions count.
        let fresh = try self.stage(sessions: .ofTheFirst)
        fresh.hub.nothingUnacknowledged(of: 1)
        try fresh.disconnect(1)
        #expect(try point(of: "ann", fresh) == .mark(3))
    }

    @Test func whoIsPassedByUntilItIsGoneHasToJoinAgain() throws {
        let (stage, _, first) = try stageOfOneWhoRecovers()
        _ = try stage.watch { $0.deliverEvent(.recovery(first, .passedBy(since: "c.1"))) }
        let (second, _) = try question(stage)
        let told = try stage.watch { $0.deliverEvent(.recovery(second, .began(.refused(.tooOld)))) }
        #expect(told.contains { $0.contains("phx_error") }, "\(told)")
    }

    @Test func theDatabaseGoesAwayMeanwhile() throws {
        let stage = try stage()
        try stage.disconnect(1)
        stage.connect(2, subject: "ann")
        try stage.join("realtime:a", 2, ref: "7", Self.config)
        let group = try #require(stage.subscribed.first)
        _ = try stage.watch { $0.changeSubscription(group, is: .live) }
        let (id, _) = try question(stage)
        let refused = try stage.watch { $0.deliverEvent(.recovery(id, .unavailable)) }
        #expect(refused.first?.contains(#""status":"error""#) == true)
        // The next try starts where the first would have.
        try stage.join("realtime:a", 2, ref: "8", Self.config)
        let again = try #require(stage.subscribed.first)
        let live = try stage.watch { $0.changeSubscription(again, is: .live) }
        #expect(live == ["recover 0.\(again.serial) restart"])
    }

    /// It is not the database that is away, and the client is told what to do.
    @Test func aPolicyFailsOnWhatWasMissed() throws {
        let stage = try stage()
        try stage.disconnect(1)
        stage.connect(2, subject: "ann")
        try stage.join("realtime:a", 2, ref: "7", Self.config)
        let group = try #require(stage.subscribed.first)
        _ = try stage.watch { $0.changeSubscription(group, is: .live) }
        let (id, _) = try question(stage)
        _ = try stage.watch { $0.deliverEvent(.recovery(id, .began(.resumed))) }
        let told = try stage.watch { $0.deliverEvent(.recovery(id, .undecided)) }
        #expect(told.contains { $0.contains("phx_error") && $0.contains("RlsPolicyError: A policy failed") }, "\(told)")
        #expect(stage.hub.counters.recoveries["undecided"] == 1)
        // The next try starts where this one would have.
        try stage.join("realtime:a", 2, ref: "8", Self.config)
        let again = try #require(stage.subscribed.first)
        let live = try stage.watch { $0.changeSubscription(again, is: .live) }
        #expect(live == ["recover 0.\(again.serial) restart"])
    }

    /// Where a join of this user would have to recover from; it leaves again.
    private func point(
        of subject: String, _ stage: Stage, topic: String = "realtime:a", ref: String = "50", session: String? = nil
    ) throws -> RecoveryPoint? {
        stage.connect(9, subject: subject, session: session)
        defer { stage.hub.disconnect(9) }
        _ = try stage.join(topic, 9, ref: ref, Self.config)
        if let group = stage.subscribed.first {
            _ = try stage.watch { $0.changeSubscription(group, is: .live) }
        }
        let points: [RecoveryPoint] = stage.actions.compactMap {
            if case .recover(_, let question) = $0 { question.from } else { nil }
        }
        return points.first
    }
}

extension SessionRegistry {
    /// Of a hub whose name never served this database.
    static var ofTheFirst: SessionRegistry {
        let registry = SessionRegistry()
        registry.nobodyIsFromBefore()
        return registry
    }
}
