import Hub
import Matching
import Testing
import Wire

/// `CatchUp` by itself: what members missed comes before what comes live, and is asked for once.
@Suite struct CatchUpTests {
    private static let ann = Stage.claims(subject: "ann")
    private var stage = FeatureStage()
    private var rows = RowSubscriptions()
    private var catchUp = CatchUp(sessions: .ofTheFirst)

    /// A member that asks for row changes. Its join is let in when `letIn` says so.
    private mutating func join(
        _ slot: Slot, _ claims: Claims = ann, cursor: String? = nil
    ) throws -> (member: Membership, group: ChangeGroup) {
        let config = try stage.config(cursor.map { #"{"resume":{"cursor":"\#($0)"}}"# } ?? "{}")
        let member = stage.member(slot, claims, config)
        let group = rows.registerGroup(
            of: stage.channel, ChangeSubscription(role: claims.role, bindings: [], ids: []), &stage.hub)
        rows.enterGroup(group, member, &stage.hub)
        member.recovery = catchUp.openSession(
            config, joinRef: .null, claims: claims, in: group, on: member.connection, rows.progress, &stage.hub)
        return (member, group)
    }

    /// A member that is owed what lies behind a cursor, and the feed's question.
    private mutating func recovering() throws -> (member: Membership, group: ChangeGroup, id: RecoveryID) {
        let (member, group) = try join(1, cursor: "c.1")
        _ = group.receiveOutcome(.live, at: 0)
        catchUp.askForMissed(by: member, rows.progress, &stage.hub)
        member.isLetIn()
        return (member, group, try #require(stage.recoveries.first))
    }

    private mutating func letIn(_ member: Membership) {
        member.isLetIn()
        catchUp.startOrWait(member, rows, &stage.hub)
    }

    private mutating func take(_ step: RecoveryStep, _ id: RecoveryID) -> String? {
        switch catchUp.receiveStep(step, of: id, rows, &stage.hub)?.1 {
        case nil: nil
        case .isKnown: "is known"
        case .failed(let refusal): refusal.message
        }
    }

    private func change(_ group: ChangeGroup, _ text: String) -> ChangeDelivery {
        ChangeDelivery(group: group.id, operation: .insert, ids: [1], data: Array(text.utf8), cursor: "c." + text)
    }

    /// What was asked of the feed since the last look.
    private mutating func questions() throws -> [String] {
        try stage.done().filter { $0.hasPrefix("recover") || $0 == "abandon" }.map {
            String($0.replacing(/\ \d\.\d+/, with: ""))
        }
    }

    // MARK: What was missed

    @Test mutating func whoMissedNothingHearsWhatIsLive() throws {
        let (member, group) = try join(1)
        _ = group.receiveOutcome(.live, at: 0)
        letIn(member)
        #expect(group.audience.v2 == [1])
        let told = try stage.done()
        #expect(!told.contains { $0.hasPrefix("recover") })
        #expect(told.last?.contains("Subscribed to PostgreSQL") == true)
    }

    @Test mutating func whatWasMissedComesFirst() throws {
        let (_, group, id) = try recovering()
        #expect(try questions() == ["recover cursor(\"c.1\")"])
        #expect(take(.began(.resumed), id) == "is known")
        #expect(take(.changes([change(group, "2"), change(group, "3")]), id) == nil)
        #expect(try stage.done().map { $0.contains(#""data":2"#) } == [true, false])
        #expect(group.audience.v2 == [], "what is live would come before")
        _ = take(.caughtUp(cursor: "c.3"), id)
        #expect(group.audience.v2 == [1])
        #expect(try stage.done().last == "1 ← ping 1", "the pong acknowledges all of it")
        #expect(catchUp.recoveringMember(id) == nil)
    }

    @Test mutating func aQuestionWaitsForTheGroup() throws {
        let (member, group) = try join(1, cursor: "c.1")
        _ = try stage.done()
        letIn(member)
        #expect(try questions() == [])
        _ = group.receiveOutcome(.live, at: 0)
        catchUp.askForMissed(by: member, rows.progress, &stage.hub)
        catchUp.askForMissed(by: member, rows.progress, &stage.hub)
        #expect(try questions() == ["recover cursor(\"c.1\")"], "it is asked once")
        #expect(group.audience.v2 == [])
    }

    @Test mutating func whoWasPassedByAsksAgainFromThere() throws {
        let (_, group, id) = try recovering()
        _ = take(.began(.resumed), id)
        _ = try stage.done()
        _ = take(.passedBy(since: "c.7"), id)
        let next = try #require(stage.recoveries.first)
        #expect(try questions() == ["recover cursor(\"c.7\")"])
        #expect(group.audience.v2 == [])
        #expect(
            take(.began(.refused(.tooOld)), next) == Refusal.databaseUnavailable.message,
            "the reply said that it is told")
    }

    @Test(arguments: [
        (RecoveryStep.began(.resumed), "is known"), (.began(.refused(.tooOld)), "is known"),
        (.unavailable, Refusal.databaseUnavailable.message), (.undecided, Refusal.policyFailed.message),
    ])
    mutating func whatTheFeedSays(_ step: RecoveryStep, _ outcome: String) throws {
        let (_, _, id) = try recovering()
        #expect(take(step, id) == outcome)
        #expect(
            (catchUp.recoveringMember(id) == nil) == (outcome != "is known"), "what failed is not under way any more")
    }

    @Test mutating func whoIsGoneIsBroughtNothing() throws {
        let (member, group, id) = try recovering()
        _ = try stage.done()
        catchUp.endSession(member, .lost, &stage.hub)
        #expect(try questions() == ["abandon"])
        #expect(take(.changes([change(group, "2")]), id) == nil)
        #expect(try stage.done() == [])
    }

    // MARK: Who comes back

    @Test(arguments: [(MembershipEnd.lost, ["recover mark(3)"]), (.left, []), (.unloaded, [])])
    mutating func whoWasLostIsOwedWhatCameSince(_ end: MembershipEnd, _ asked: [String]) throws {
        let (member, group) = try join(1)
        _ = group.receiveOutcome(.live, at: 0)
        letIn(member)
        rows.progress.reachMark(3)
        let ping = try #require(catchUp.makePing(member.connection, rows.progress, &stage.hub))
        #expect(catchUp.receivePong(try ping.shown().dropFirst(5).utf8, from: member.connection, &stage.hub))
        rows.progress.reachMark(5)
        catchUp.endSession(member, end, &stage.hub)
        _ = try stage.done()
        let (back, _) = try join(2)
        letIn(back)
        #expect(try questions() == asked)
        let (other, _) = try join(3, Stage.claims(subject: "bob"))
        letIn(other)
        #expect(try questions() == [])
    }

    /// A socket that looks alike may be a dead one of the same client: it has a second to say that it lives.
    @Test(arguments: [true, false]) mutating func aSocketInDoubtHasASecond(_ answers: Bool) throws {
        let (member, group) = try join(1)
        _ = group.receiveOutcome(.live, at: 0)
        letIn(member)
        rows.progress.reachMark(3)
        _ = try stage.done()
        let (back, _) = try join(2)
        #expect(try stage.done().contains("ask 0.1"))
        #expect(catchUp.advanceArrival(of: back, rows.progress, &stage.hub) == nil)
        if answers {
            let ping = try #require(catchUp.makePing(member.connection, rows.progress, &stage.hub))
            _ = catchUp.receivePong(try ping.shown().dropFirst(5).utf8, from: member.connection, &stage.hub)
        } else {
            stage.advance(by: 999)
            #expect(catchUp.advanceArrival(of: back, rows.progress, &stage.hub) == nil)
            stage.advance(by: 1)
        }
        #expect(catchUp.advanceArrival(of: back, rows.progress, &stage.hub) == .met(.session))
        letIn(back)
        #expect(try questions() == (answers ? [] : ["recover mark(0)"]))
    }

    @Test mutating func whoActsByAnotherTokenRecoversFromHere() throws {
        let (member, group, id) = try recovering()
        _ = take(.began(.resumed), id)
        _ = take(.caughtUp(cursor: "c.1"), id)
        rows.progress.reachMark(6)
        _ = try stage.done()
        member.claims = Stage.claims(subject: "bob")
        catchUp.startAnew(member, wasHearing: true, rows.progress, &stage.hub)
        catchUp.askForMissed(by: member, rows.progress, &stage.hub)
        #expect(try questions() == ["recover mark(6)"])
        catchUp.startAnew(member, wasHearing: false, rows.progress, &stage.hub)
        #expect(try questions() == ["abandon"])
        #expect(group.audience.v2 == [1])
    }
}
