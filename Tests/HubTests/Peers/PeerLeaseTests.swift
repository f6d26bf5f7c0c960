import Hub
import Testing
import Wire

/// Presence where several hubs act as one: who is cut off here may be back on another hub, and the other way round.
@Suite struct PeerLeaseTests {
    private static let key = ChannelKey(topic: "realtime:a", isPrivate: false)
    private static let asAda = #"{"presence":{"key":"ada","enabled":true}}"#
    private static let elsewhere = MemberID(loop: MemberID.firstForeignLoop, serial: 7)

    /// A watcher on slot 9.
    private func stage(_ leases: PresenceLeases = PresenceLeases()) throws -> Stage {
        let stage = Stage(presence: PresenceRules(), presences: leases, hasPeers: true)
        stage.connect(9)
        try stage.join("realtime:a", 9, #"{"presence":{"key":"watcher","enabled":true}}"#)
        return stage
    }

    /// Ada on slot 1, who tracks.
    private func arrive(_ stage: Stage) throws {
        stage.connect(1, subject: "ada")
        try stage.join("realtime:a", 1, Self.asAda)
        try stage.say(#"["1","2","realtime:a","presence",{"event":"track","payload":{"n":1}}]"#, from: 1)
    }

    private func wake(_ stage: Stage, after milliseconds: Int64) throws -> [String] {
        stage.now = stage.now.advanced(by: milliseconds)
        return try stage.watch { $0.wake(at: stage.now) }
    }

    /// Ada is present on another hub, which lost her.
    private func adaIsLostElsewhere(_ stage: Stage, _ leases: PresenceLeases, until: Int64 = 2000) throws {
        var diff = PresenceDiff()
        diff.joins = [PresenceMeta(member: Self.elsewhere, key: "ada", ref: "r1", payload: Array(#"{"n":1}"#.utf8))]
        _ = try stage.watch { $0.applyRelay(.presence(Self.key, diff)) }
        let place = PresenceLease.Place(channel: Self.key, user: "ada", key: Array("ada".utf8))
        leases.offerLeases([
            PresenceLease(
                member: Self.elsewhere, place: place, key: "ada", appState: nil, loop: PresenceLease.elsewhere,
                until: until)
        ])
    }

    @Test func theOthersHearOfWhoIsLostAndNobodyEndsAloneWhatIsOver() throws {
        let stage = try stage()
        try arrive(stage)
        let lost = try stage.disconnect(1)
        #expect(lost.count == 1 && lost[0].hasPrefix("relay lease realtime:a lost 0."))
        #expect(lost[0].hasSuffix("for 2000"))
        #expect(try wake(stage, after: 1999).isEmpty)
        let over = try wake(stage, after: 1)
        #expect(over.count == 1 && over[0].hasPrefix("relay lease realtime:a over 0."), "watchers are told nothing yet")
        guard case .lease(_, .over(let member)) = stage.relays.first else { return #expect(Bool(false)) }
        let ended = try stage.watch { $0.concludeLease(.isOver, of: member, in: Self.key) }
        #expect(ended.contains { $0.hasPrefix("9 ⇐") && $0.contains(#""leaves":{"ada""#) })
        #expect(ended.contains("relay presence realtime:a +0 -1"))
        #expect(try stage.watch { $0.concludeLease(.isOver, of: member, in: Self.key) }.isEmpty, "once")
    }

    @Test func whoComesBackFromAnotherHubWasNeverGone() throws {
        let leases = PresenceLeases()
        let stage = try stage(leases)
        try adaIsLostElsewhere(stage, leases)
        stage.connect(1, subject: "ada")
        let said = try stage.join("realtime:a", 1, Self.asAda)
        #expect(said.contains { $0.contains("expected \(MemberID.firstForeignLoop).7 for 5000") })
        #expect(said.contains { $0.contains("claimed \(MemberID.firstForeignLoop).7 by 0") })
        #expect(!said.contains { $0.contains("presence_diff") })
        let track = try stage.say(#"["1","2","realtime:a","presence",{"event":"track","payload":{"n":1}}]"#, from: 1)
        #expect(!track.contains { $0.contains("presence_diff") }, "she says the same")
        #expect(leases.count == 0)
        let left = try stage.say(#"["1","3","realtime:a","phx_leave",{}]"#, from: 1)
        #expect(left.contains { $0.contains(#""leaves":{"ada":{"metas":[{"n":1,"phx_ref":"r1"#) })
    }

    @Test func aClaimThatCameTooLateIsAnArrival() throws {
        let leases = PresenceLeases()
        let stage = try stage(leases)
        try adaIsLostElsewhere(stage, leases)
        stage.connect(1, subject: "ada")
        try stage.join("realtime:a", 1, Self.asAda)
        let anew = LeaseConclusion.goesOnAnew(payload: Array(#"{"n":1}"#.utf8))
        let renewed = try stage.watch { $0.concludeLease(anew, of: Self.elsewhere, in: Self.key) }
        let isOneChange = renewed.contains { $0.contains(#""joins":{"ada""#) && $0.contains(#""leaves":{"ada""#) }
        #expect(isOneChange, "nobody is gone in between")
        #expect(renewed.contains("relay presence realtime:a +1 -1"))
        #expect(try stage.watch { $0.concludeLease(anew, of: Self.elsewhere, in: Self.key) }.isEmpty, "once")
    }

    @Test func aClaimThatCameTooLateIsAnArrivalAlsoWhereTheEndWasShown() throws {
        let leases = PresenceLeases()
        let stage = try stage(leases)
        try adaIsLostElsewhere(stage, leases)
        stage.connect(1, subject: "ada")
        try stage.join("realtime:a", 1, Self.asAda)
        var gone = PresenceDiff()
        gone.leaves = [PresenceMeta(member: Self.elsewhere, key: "", ref: "r1", payload: [])]
        _ = try stage.watch { $0.applyRelay(.presence(Self.key, gone)) }
        let anew = LeaseConclusion.goesOnAnew(payload: Array(#"{"n":1}"#.utf8))
        let renewed = try stage.watch { $0.concludeLease(anew, of: Self.elsewhere, in: Self.key) }
        #expect(renewed.contains("relay presence realtime:a +1 -0"))
        guard case .presence(_, let diff) = stage.relays.first else { return #expect(Bool(false)) }
        #expect(diff.joins[0].key == "ada" && diff.joins[0].member != Self.elsewhere)
    }

    @Test func whoIsTakenOverWhileHereGoesOnAsSomebodyElse() throws {
        let stage = try stage()
        try arrive(stage)
        guard case .presence(_, let diff) = stage.relays.first else { return #expect(Bool(false)) }
        let member = diff.joins[0].member
        _ = try stage.watch { $0.concludeLease(.goesOnAnew(payload: []), of: member, in: Self.key) }
        guard case .presence(_, let next) = stage.relays.first else { return #expect(Bool(false)) }
        #expect(next.joins[0].member != member && next.joins[0].key == "ada")
        #expect(next.leaves[0].member == member)
    }

    @Test func theOthersKnowTheStateOfAnApp() throws {
        let stage = try stage()
        try arrive(stage)
        let said = try stage.say(#"["1","5","realtime:a","app_state",{"state":"background"}]"#, from: 1)
        #expect(said.contains { $0.hasPrefix("relay state realtime:a") && $0.hasSuffix("background") })
        #expect(try stage.disconnect(1).contains { $0.hasSuffix("for 20000") })
    }
}
