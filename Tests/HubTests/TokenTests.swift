import Hub
import Testing
import Wire

/// Tokens on live channels (wire-protocol A8).
@Suite struct TokenTests {
    private func token(_ value: String) -> String {
        #"["1","5","realtime:a","access_token",{"access_token":\#(value)}]"#
    }

    private func stage(expiresAt: Int = 10_000) throws -> Stage {
        let stage = Stage()
        stage.connect(1, expiresAt: expiresAt)
        try stage.join("realtime:a", 1)
        return stage
    }

    @Test(arguments: [#""good anon 2000""#, "null", #""sb_publishable_x""#, #""""#, "7", "{}"])
    func goodOnesAndNonesAreMetWithSilence(_ value: String) throws {
        let stage = try stage()
        #expect(try stage.say(token(value), from: 1).isEmpty)
        #expect(try stage.say(#"["1","5","realtime:a","access_token",[]]"#, from: 1).isEmpty)
        #expect(stage.hub.channelCount == 1)
    }

    /// By `phx_error`, which makes clients join again; `phx_close` would be final.
    @Test func badOnesEndTheChannel() throws {
        let stage = try stage()
        #expect(
            try stage.say(token(#""bad""#), from: 1) == [
                #"1 ← ["1",null,"realtime:a","system",{"extension":"system","status":"error","message":"The token provided is not a valid JWT","channel":"a"}]"#,
                #"1 ← ["1","1","realtime:a","phx_error",{"code":401,"reason":"MalformedJWT: The token provided is not a valid JWT"}]"#,
            ])
        #expect(stage.hub.channelCount == 0)
        #expect(try stage.join("realtime:a", 1).first?.contains(#""ok""#) == true)
    }

    @Test func inVersionOneToo() throws {
        let stage = Stage()
        stage.connect(1, .v1)
        try stage.joinV1("realtime:a", 1, ref: "3")
        let bad = #"{"topic":"realtime:a","event":"access_token","payload":{"access_token":"good anon 900"},"ref":"4"}"#
        #expect(
            try stage.say(bad, from: 1) == [
                #"1 ← {"topic":"realtime:a","event":"system","payload":{"extension":"system","status":"error","message":"Token has expired 100 seconds ago","channel":"a"},"ref":null}"#,
                #"1 ← {"topic":"realtime:a","event":"phx_error","payload":{"code":401,"reason":"InvalidJWTToken: Token has expired 100 seconds ago"},"ref":"3"}"#,
            ])
    }

    @Test func otherChannelsStay() throws {
        let stage = try stage()
        try stage.join("realtime:b", 1, ref: "2")
        #expect(try stage.say(token(#""bad""#), from: 1).count == 2)
        #expect(stage.hub.channelCount == 1)
        #expect(try stage.say(#"["2","9","realtime:b","phx_leave",{}]"#, from: 1).count == 2)
    }

    /// Signing in on a joined channel: what a member receives is what the role of its newest token may see.
    @Test func anotherRoleTakesTheSubscriptionOver() throws {
        let stage = Stage()
        stage.connect(1)
        try stage.join("realtime:a", 1, #"{"postgres_changes":[{"event":"*","schema":"public","table":"todos"}]}"#)
        let old = try #require(stage.subscribed.first)
        _ = try stage.watch { $0.changeSubscription(old, is: .live) }

        let said = try stage.say(token(#""good authenticated 2000""#), from: 1)
        let new = try #require(stage.subscribed.first)
        #expect(said.contains("unsubscribe \(old.loop).\(old.serial)"))
        #expect(said.contains { $0.hasPrefix("subscribe \(new.loop).\(new.serial) authenticated") })

        func change(_ group: ChangeGroupID) -> FeedEvent {
            .change(ChangeDelivery(group: group, operation: .insert, ids: [1], data: Array("{}".utf8)))
        }
        #expect(try stage.watch { $0.deliverEvent(change(old)) }.isEmpty)
        #expect(
            try stage.watch { $0.changeSubscription(new, is: .live) } == ["recover 0.\(new.serial) mark(0)"])
        #expect(
            try stage.catchUp() == [
                #"1 ← ["1",null,"realtime:a","system",{"extension":"postgres_changes","status":"ok","message":"Subscribed to PostgreSQL","channel":"a"}]"#,
                "1 ← ping 1",
            ])
        #expect(try stage.watch { $0.deliverEvent(change(new)) }.count == 1)
        #expect(
            try stage.say(token(#""good authenticated 3000""#), from: 1) == ["recover 0.\(new.serial) mark(0)"],
            "the same role keeps the group")
        #expect(stage.admissions.count == 2, "policies are asked about the new claims from here on")
        #expect(
            try stage.catchUp() == [
                #"1 ← ["1",null,"realtime:a","system",{"extension":"postgres_changes","status":"ok","message":"Subscribed to PostgreSQL","channel":"a"}]"#,
                "1 ← ping 2",
            ])
        #expect(try stage.watch { $0.deliverEvent(change(new)) }.count == 1)
    }

    // MARK: Expiry

    @Test func expiryEndsTheChannelOnTheSecond() throws {
        let stage = try stage(expiresAt: 1060)
        #expect(try stage.tick(after: 59_999).isEmpty)
        #expect(
            try stage.tick(after: 1) == [
                #"1 ← ["1",null,"realtime:a","system",{"extension":"system","status":"error","message":"Token has expired 0 seconds ago","channel":"a"}]"#,
                #"1 ← ["1","1","realtime:a","phx_error",{"code":401,"reason":"InvalidJWTToken: Token has expired 0 seconds ago"}]"#,
            ])
        #expect(stage.hub.channelCount == 0)
        #expect(try stage.tick(after: 100_000).isEmpty)
    }

    @Test func aFreshTokenPutsItOff() throws {
        let stage = try stage(expiresAt: 1060)
        try stage.say(token(#""good anon 1200""#), from: 1)
        #expect(try stage.tick(after: 61_000).isEmpty)
        #expect(try stage.tick(after: 138_000).isEmpty)
        #expect(try stage.tick(after: 1_000).count == 2)
    }

    @Test func aShorterTokenBringsItForward() throws {
        let stage = try stage()
        try stage.say(token(#""good anon 1010""#), from: 1)
        #expect(try stage.tick(after: 9_000).isEmpty)
        #expect(try stage.tick(after: 1_000).count == 2)
    }

    @Test func everybodyOnTime() throws {
        let stage = Stage()
        for slot in Slot(1)...5 {
            stage.connect(slot, expiresAt: 1000 + Int(slot) * 10)
            try stage.join("realtime:a", slot)
            try stage.join("realtime:b\(slot)", slot)
        }
        for slot in 1...5 {
            #expect(try stage.tick(after: 9_000).isEmpty)
            let said = try stage.tick(after: 1_000)
            #expect(said.count == 4)
            #expect(said.allSatisfy { $0.hasPrefix("\(slot) ←") })
        }
        #expect(stage.hub.channelCount == 0)
    }

    @Test func theOthersSeeThePresenceEnd() throws {
        let stage = Stage()
        stage.connect(1, expiresAt: 1010)
        stage.connect(2)
        for slot in Slot(1)...2 { try stage.join("realtime:a", slot, #"{"presence":{"key":"k","enabled":true}}"#) }
        try stage.say(#"["1","2","realtime:a","presence",{"event":"track"}]"#, from: 1)
        let said = try stage.tick(after: 10_000)
        #expect(said.count == 4)
        #expect(said[1].hasPrefix(#"2 ⇐ [null,null,"realtime:a","presence_diff",{"joins":{},"leaves":{"k":"#))
    }

    /// A join that waits for the feed is ended like one that was answered.
    @Test func expiryReachesWaitingJoins() throws {
        let stage = Stage()
        stage.connect(1, expiresAt: 1010)
        try stage.join("realtime:a", 1, #"{"postgres_changes":[{"schema":"public"}]}"#)
        let group = try #require(stage.subscribed.first)
        let said = try stage.tick(after: 10_000)
        #expect(said.contains("unsubscribe \(group.loop).\(group.serial)"))
        #expect(said.last?.contains("phx_error") == true)
        #expect(try stage.watch { $0.changeSubscription(group, is: .live) }.isEmpty)
        #expect(stage.hub.channelCount == 0)
    }
}
