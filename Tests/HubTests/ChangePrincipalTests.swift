import Hub
import Testing
import Wire

/// Row changes that policies decide about: who brought which claims, and who is sent what.
@Suite struct ChangePrincipalTests {
    private static let config = #"{"postgres_changes":[{"event":"*","schema":"public","table":"todos"}]}"#

    /// Three members of one channel; 1 and 2 brought the same claims.
    private func stage() throws -> (stage: Stage, group: ChangeGroupID) {
        let stage = Stage()
        for (slot, expiry) in [(Slot(1), 5000), (2, 5000), (3, 6000)] {
            stage.connect(slot, expiresAt: expiry)
        }
        try stage.join("realtime:a", 1, Self.config)
        let group = try #require(stage.subscribed.first)
        try stage.join("realtime:a", 2, Self.config)
        try stage.join("realtime:a", 3, Self.config)
        _ = try stage.watch { $0.changeSubscription(group, is: .live) }
        return (stage, group)
    }

    private func claims(_ expiry: Int) -> Claims { Stage.claims(expiresAt: expiry) }

    private func change(_ group: ChangeGroupID, for claims: [Claims]) -> FeedEvent {
        .change(
            ChangeDelivery(
                group: group, operation: .insert, ids: [1], data: Array("{}".utf8), recipients: .bearers(claims)))
    }

    private func receivers(_ lines: [String]) -> [String] { lines.map { String($0.prefix { $0 != " " }) } }

    @Test func theFeedHearsOfEachClaimsOnce() throws {
        let stage = Stage()
        stage.connect(1, expiresAt: 5000)
        stage.connect(2, expiresAt: 5000)
        stage.connect(3, expiresAt: 6000)
        try stage.join("realtime:a", 1, Self.config)
        let group = try #require(stage.subscribed.first)
        #expect(stage.admissions == [#"+\#(group.serial) {"exp":5000}"#])
        try stage.join("realtime:a", 2, Self.config)
        #expect(stage.admissions.isEmpty)
        try stage.join("realtime:a", 3, Self.config)
        #expect(stage.admissions == [#"+\#(group.serial) {"exp":6000}"#])
        _ = try stage.watch { $0.changeSubscription(group, is: .live) }

        try stage.disconnect(1)
        #expect(stage.admissions.isEmpty)
        try stage.disconnect(2)
        #expect(stage.admissions == [#"-\#(group.serial) {"exp":5000}"#])
        let last = try stage.disconnect(3)
        #expect(stage.admissions == [#"-\#(group.serial) {"exp":6000}"#])
        #expect(last == ["unsubscribe 0.\(group.serial)"])
    }

    @Test func onlyTheBearersAreSentAChange() throws {
        let (stage, group) = try stage()
        #expect(receivers(try stage.watch { $0.deliverEvent(self.change(group, for: [self.claims(5000)])) }) == ["1,2"])
        #expect(receivers(try stage.watch { $0.deliverEvent(self.change(group, for: [self.claims(6000)])) }) == ["3"])
        let both = [claims(6000), claims(5000)]
        #expect(receivers(try stage.watch { $0.deliverEvent(self.change(group, for: both)) }) == ["1,2,3"])
        #expect(try stage.watch { $0.deliverEvent(self.change(group, for: [])) }.isEmpty)
        #expect(try stage.watch { $0.deliverEvent(self.change(group, for: [self.claims(7000)])) }.isEmpty)
    }

    /// Somebody who comes with the same claims while it holds hears nothing either.
    @Test func whoIsShownNothingIsToldWithEachJoin() throws {
        let (stage, group) = try stage()
        let complaint = SubscriptionComplaint("None of it for now.", isError: false)
        func told(_ lines: [String]) -> [String] { receivers(lines.filter { $0.contains(complaint.message) }) }
        let first = try stage.watch {
            $0.deliverEvent(.complaint(complaint, group, self.claims(5000), milliseconds: 300_000))
        }
        #expect(told(first).sorted() == ["1", "2"] && first.count == 2, "\(first)")
        func join(_ slot: Slot, _ expiry: Int) throws -> [String] {
            stage.connect(slot, expiresAt: expiry)
            return try stage.join("realtime:a", slot, Self.config) + stage.catchUp()
        }
        let again = try join(4, 5000)
        #expect(told(again) == ["4"])
        #expect(again.last?.contains(complaint.message) == true, "behind the word that it is subscribed: \(again)")
        #expect(told(try join(5, 6000)) == [])
        try stage.tick(after: 300_001)
        #expect(told(try join(6, 5000)) == [])
    }

    @Test func whoHearsAGroupIsToldThatChangesAreMissing() throws {
        let (stage, group) = try stage()
        let told = try stage.watch { $0.deliverEvent(.loss("ChangesLost: some", group)) }
        #expect(receivers(told).sorted() == ["1", "2", "3"])
        #expect(told.allSatisfy { $0.contains(#""status":"ok","message":"ChangesLost: some""#) }, "\(told)")
        let other = ChangeGroupID(loop: 0, serial: group.serial + 1000)
        #expect(try stage.watch { $0.deliverEvent(.loss("ChangesLost: some", other)) }.isEmpty)
    }

    @Test func whoHasLeftIsNotSentIt() throws {
        let (stage, group) = try stage()
        try stage.disconnect(1)
        #expect(receivers(try stage.watch { $0.deliverEvent(self.change(group, for: [self.claims(5000)])) }) == ["2"])
        try stage.disconnect(2)
        #expect(try stage.watch { $0.deliverEvent(self.change(group, for: [self.claims(5000)])) }.isEmpty)
        #expect(receivers(try stage.watch { $0.deliverEvent(self.change(group, for: [self.claims(6000)])) }) == ["3"])
    }

    /// A token of another user, brought to a live channel, and to one whose join is not answered yet.
    @Test(arguments: [true, false]) func anotherTokenIsAnotherPrincipal(isLive: Bool) throws {
        let stage = Stage()
        stage.connect(1, expiresAt: 5000)
        try stage.join("realtime:a", 1, Self.config)
        let group = try #require(stage.subscribed.first)
        if isLive { _ = try stage.watch { $0.changeSubscription(group, is: .live) } }
        try stage.say(#"["1","9","realtime:a","access_token",{"access_token":"good anon 8000"}]"#, from: 1)
        #expect(stage.admissions == [#"+\#(group.serial) {"exp":8000}"#, #"-\#(group.serial) {"exp":5000}"#])
        if isLive { try stage.catchUp() } else { _ = try stage.watch { $0.changeSubscription(group, is: .live) } }
        #expect(try stage.watch { $0.deliverEvent(self.change(group, for: [self.claims(5000)])) }.isEmpty)
        #expect(receivers(try stage.watch { $0.deliverEvent(self.change(group, for: [self.claims(8000)])) }) == ["1"])
    }

    /// The role of a waiting join's newest token is the one that counts.
    @Test func anotherRoleWhileTheJoinWaits() throws {
        let stage = Stage()
        stage.connect(1)
        try stage.join("realtime:a", 1, Self.config)
        let old = try #require(stage.subscribed.first)
        let said = try stage.say(
            #"["1","9","realtime:a","access_token",{"access_token":"good authenticated 8000"}]"#, from: 1)
        let new = try #require(stage.subscribed.first)
        #expect(said.contains("unsubscribe 0.\(old.serial)"))
        #expect(try stage.watch { $0.changeSubscription(old, is: .live) }.isEmpty)
        let answered = try stage.watch { $0.changeSubscription(new, is: .live) }
        #expect(answered.first?.contains("phx_reply") == true)
        #expect(receivers(try stage.watch { $0.deliverEvent(self.change(new, for: [self.claims(8000)])) }).isEmpty)
        let authenticated = Stage.claims("authenticated", expiresAt: 8000)
        #expect(receivers(try stage.watch { $0.deliverEvent(self.change(new, for: [authenticated])) }) == ["1"])
    }

    /// Removal moves the last member into the gap, in the group's audience and in its principal's.
    @Test func positionsStayRight() throws {
        let stage = Stage()
        for slot in Slot(1)...9 {
            stage.connect(slot, slot % 2 == 0 ? .v2 : .v1, expiresAt: 5000 + Int(slot % 3))
            if slot % 2 == 0 {
                try stage.join("realtime:a", slot, Self.config)
            } else {
                try stage.joinV1("realtime:a", slot, Self.config)
            }
            if slot == 1 {
                let group = try #require(stage.subscribed.first)
                _ = try stage.watch { $0.changeSubscription(group, is: .live) }
            }
        }
        let group = ChangeGroupID(loop: 0, serial: 1)
        for gone in [Slot(3), 9, 1, 4] { try stage.disconnect(gone) }
        func slots(_ expiry: Int) throws -> Set<Slot> {
            _ = try stage.watch { $0.deliverEvent(self.change(group, for: [self.claims(expiry)])) }
            return Set(
                stage.actions.flatMap { action -> [Slot] in
                    if case .fanOut(_, let audience, _, _) = action { return audience }
                    return []
                })
        }
        #expect(try slots(5000) == [6])
        #expect(try slots(5001) == [7])
        #expect(try slots(5002) == [2, 5, 8])
    }
}
