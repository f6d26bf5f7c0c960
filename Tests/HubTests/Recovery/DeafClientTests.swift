import Hub
import Testing
import Wire

/// Clients that gave a join up and ignore what it brings them: pongs come, and acknowledge nothing.
@Suite struct DeafClientTests {
    private static let config = RecoveryTests.config
    private static let slow = #"{"postgres_changes":[{"event":"*","schema":"public","table":"slow"}]}"#

    /// A hub that has heard of mark 3, with a member of ann's in slot 1, all of it acknowledged; it joined so long ago.
    private func stage(joined milliseconds: Int64) throws -> Stage { try stageAndGroup(joined: milliseconds).0 }

    private func stageAndGroup(joined milliseconds: Int64) throws -> (Stage, ChangeGroupID) {
        let stage = Stage(sessions: SessionRegistry())
        try stage.tick(after: 200_000)
        // The restart's window begins with the first join.
        stage.connect(9, subject: "somebody")
        try stage.join("realtime:else", 9, ref: "1", Self.config)
        try goLive(stage)
        try pass(125_000, stage)
        stage.connect(1, subject: "ann")
        try stage.join("realtime:a", 1, ref: "1", Self.config)
        let group = try goLive(stage)
        _ = try stage.watch { $0.deliverEvent(.boundary(3)) }
        stage.hub.nothingUnacknowledged(of: 1)
        try pass(milliseconds, stage)
        return (stage, group)
    }

    @discardableResult private func goLive(_ stage: Stage) throws -> ChangeGroupID {
        let group = try #require(stage.subscribed.first)
        _ = try stage.watch { $0.changeSubscription(group, is: .live) }
        if !stage.recoveries.isEmpty { try stage.catchUp() }
        return group
    }

    /// As the loop does: once a second, so that the hub sees that it did not stand still.
    private func pass(_ milliseconds: Int64, _ stage: Stage) throws {
        for _ in 0..<(milliseconds / 1000) { try stage.tick(after: 1000) }
    }

    private func point(of ref: String, slot: Slot, _ stage: Stage) throws -> RecoveryPoint? {
        stage.connect(slot, subject: "ann")
        return try rejoin(ref, slot: slot, stage)
    }

    private func rejoin(_ ref: String, slot: Slot, _ stage: Stage) throws -> RecoveryPoint? {
        _ = try stage.join("realtime:a", slot, ref: ref, Self.config)
        if let group = stage.subscribed.first { _ = try stage.watch { $0.changeSubscription(group, is: .live) } }
        return stage.actions.compactMap { if case .recover(_, let question) = $0 { question.from } else { nil } }.first
    }

    @Test(arguments: [(5_000 as Int64, 0), (125_000, 3)])
    func aJoinInPlaceOfAnother(age: Int64, mark: Int) throws {
        let stage = try stage(joined: age)
        #expect(try rejoin("9", slot: 1, stage) == .mark(mark))
    }

    @Test(arguments: [true, false])
    func aLeaveOfWhoMayNotHaveHeardThatItIsIn(isAcknowledged: Bool) throws {
        let stage = try stage(joined: 125_000)
        try stage.disconnect(1)
        try pass(60_000, stage)
        #expect(try point(of: "9", slot: 2, stage) == .mark(3))
        let caughtUp = try stage.catchUp()
        #expect(caughtUp.last == "2 ← ping 1")
        if isAcknowledged { stage.hub.receivePong("1".utf8, from: 2) }
        try stage.say(#"["9","10","realtime:a","phx_leave",{}]"#, from: 2)
        // Behind the window of the first loss, only what the second left counts.
        try pass(65_000, stage)
        #expect(try point(of: "11", slot: 3, stage) == (isAcknowledged ? nil : .mark(3)))
    }

    @Test(arguments: [(1_000 as Int64, 8), (5_000, 3)])
    func anAnswerThatComesLate(after milliseconds: Int64, mark: Int) throws {
        let stage = try stage(joined: 125_000)
        stage.connect(2, subject: "bob")
        _ = try stage.join("realtime:a", 2, ref: "1", Self.slow)
        let group = try #require(stage.subscribed.first)
        try pass(milliseconds, stage)
        _ = try stage.watch { $0.changeSubscription(group, is: .live) }
        _ = try stage.watch { $0.deliverEvent(.boundary(8)) }
        stage.hub.nothingUnacknowledged(of: 2)
        try stage.disconnect(2)
        stage.connect(3, subject: "bob")
        _ = try stage.join("realtime:a", 3, ref: "5", Self.slow)
        if let group = stage.subscribed.first { _ = try stage.watch { $0.changeSubscription(group, is: .live) } }
        let points: [RecoveryPoint] = stage.actions.compactMap {
            if case .recover(_, let question) = $0 { question.from } else { nil }
        }
        #expect(points == [.mark(mark)])
    }

    /// What came while the hub stood still is old when it is read.
    @Test func aHubThatStoodStill() throws {
        let stage = try stage(joined: 125_000)
        try stage.disconnect(1)
        try stage.tick(after: 9_000)
        #expect(try point(of: "9", slot: 2, stage) == .mark(3))
        try stage.catchUp()
        stage.hub.receivePong("1".utf8, from: 2)
        _ = try stage.watch { $0.deliverEvent(.boundary(8)) }
        stage.hub.nothingUnacknowledged(of: 2)
        try stage.disconnect(2)
        try pass(115_000, stage)
        #expect(try point(of: "11", slot: 3, stage) == .mark(3), "though it answered")
    }

    @Test func aWordOfFailureMayBeTheEndForTheClient() throws {
        let (stage, group) = try stageAndGroup(joined: 125_000)
        _ = try stage.watch { $0.changeSubscription(group, is: .failed("the table is not watched")) }
        _ = try stage.watch { $0.changeSubscription(group, is: .live) }
        _ = try stage.watch { $0.deliverEvent(.boundary(8)) }
        stage.hub.nothingUnacknowledged(of: 1)
        try stage.disconnect(1)
        #expect(try point(of: "9", slot: 2, stage) == .mark(3))
    }
}
