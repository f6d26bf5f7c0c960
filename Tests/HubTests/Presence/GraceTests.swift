import Hub
import Testing
import Wire

/// Who is cut off, and who comes back in time.
@Suite struct GraceTests {
    private static func on(_ key: String?, _ more: String = "") -> String {
        let key = key.map { "\"key\":\"\($0)\"," } ?? ""
        return "{\"presence\":{\(key)\"enabled\":true}\(more)}"
    }

    /// A watcher on slot 9, and Ada on slot 1, who tracks.
    private func stage(_ config: String = on("ada"), rules: PresenceRules = PresenceRules()) throws -> Stage {
        let stage = Stage(presence: rules)
        stage.connect(9)
        try stage.join("realtime:a", 9, Self.on("watcher"))
        try arrive(stage, 1, config)
        return stage
    }

    private func arrive(_ stage: Stage, _ slot: Slot, _ config: String = on("ada"), tracks: Bool = true) throws {
        stage.connect(slot, subject: "ada")
        try stage.join("realtime:a", slot, config)
        if tracks { try track(stage, slot) }
    }

    @discardableResult private func track(_ stage: Stage, _ slot: Slot, _ payload: String = #"{"n":1,"s":"x"}"#) throws
        -> [String]
    {
        try stage.say(#"["1","2","realtime:a","presence",{"event":"track","payload":\#(payload)}]"#, from: slot)
    }

    private func wake(_ stage: Stage, after milliseconds: Int64) throws -> [String] {
        stage.now = stage.now.advanced(by: milliseconds)
        return try stage.watch { $0.wake(at: stage.now) }
    }

    private func heard(_ said: [String]) -> [String] { said.filter { $0.contains("presence_diff") } }

    @Test(
        arguments: [(nil, 2000), (ReportedAppState.active, 2000), (.inactive, 12_000), (.background, 20_000)]
            as [(ReportedAppState?, Int64)])
    func theWindowIsThatOfTheLastState(_ state: ReportedAppState?, _ window: Int64) throws {
        let stage = try stage()
        if let state {
            try stage.say(#"["1","5","realtime:a","app_state",{"state":"\#(state.rawValue)"}]"#, from: 1)
        }
        #expect(try stage.disconnect(1).isEmpty)
        #expect(stage.hub.nextDue == stage.now.monotonic + window)
        #expect(try wake(stage, after: window - 1).isEmpty)
        let left = heard(try wake(stage, after: 1))
        #expect(left.count == 1)
        #expect(left.first?.contains(#""leaves":{"ada":"#) == true)
        #expect(stage.hub.nextDue == nil)
        #expect(try stage.tick(after: 60_000).isEmpty)
    }

    @Test func theStateMayBeSaidInTheJoin() throws {
        let stage = try stage(Self.on("ada", #","app_state":"background""#))
        try stage.disconnect(1)
        #expect(stage.hub.nextDue == stage.now.monotonic + 20_000)
    }

    @Test func whoReturnsInTimeWasNeverGone() throws {
        let stage = try stage()
        let before = try #require(try state(stage, 8))
        try stage.disconnect(1)
        _ = try wake(stage, after: 1900)
        stage.connect(2, subject: "ada")
        #expect(heard(try stage.join("realtime:a", 2, Self.on("ada"))).isEmpty)
        #expect(try wake(stage, after: 60_000).isEmpty)
        #expect(heard(try track(stage, 2, #"{"s":"x", "n":1}"#)).isEmpty, "the same, in another order")
        #expect(try state(stage, 7) == before, "the phx_ref stays")
        #expect(heard(try track(stage, 2, #"{"n":2}"#)).count == 1, "a change is one diff")
    }

    private func state(_ stage: Stage, _ slot: Slot) throws -> Substring? {
        stage.connect(slot)
        let said = try stage.join("realtime:a", slot, Self.on("w\(slot)"))
        try stage.disconnect(slot)
        return said.first { $0.contains("presence_state") }?.split(separator: "presence_state").last
    }

    @Test func somebodyElseDoesNotTakeItsPlace() throws {
        let stage = try stage()
        try stage.disconnect(1)
        stage.connect(2, subject: "eve")
        try stage.join("realtime:a", 2, Self.on("ada"))
        #expect(heard(try track(stage, 2)).count == 1)
        stage.connect(3, subject: "ada")
        try stage.join("realtime:a", 3, Self.on("other"))
        #expect(heard(try track(stage, 3)).count == 1)
        #expect(heard(try wake(stage, after: 2000)).count == 1, "Ada is gone")
    }

    @Test func aKeyThatTheHubMadeComesBackWithItsUser() throws {
        let stage = try stage(Self.on(nil))
        try stage.disconnect(1)
        _ = try wake(stage, after: 1900)
        try arrive(stage, 2, Self.on(nil), tracks: false)
        #expect(try wake(stage, after: 2900).isEmpty)
        #expect(try wake(stage, after: 2000).isEmpty, "there is time to say who it is")
        #expect(heard(try track(stage, 2)).isEmpty)
        try stage.disconnect(2)
        _ = try wake(stage, after: 100)
        try arrive(stage, 3, Self.on(nil), tracks: false)
        #expect(heard(try wake(stage, after: 3000)).isEmpty)
        #expect(heard(try wake(stage, after: 2000)).count == 1, "it never said")
    }

    @Test func cleanEndsAreHeardAtOnce() throws {
        for end in [
            #"["1","3","realtime:a","phx_leave",{}]"#, #"["1","3","realtime:a","presence",{"event":"untrack"}]"#,
        ] {
            let stage = try stage()
            #expect(heard(try stage.say(end, from: 1)).count == 1)
            try stage.disconnect(1)
            #expect(try wake(stage, after: 60_000).isEmpty)
        }
    }

    @Test func joiningAgainOnTheSameSocketIsHeardByNobody() throws {
        let stage = try stage()
        #expect(heard(try stage.join("realtime:a", 1, ref: "4", Self.on("ada"))).isEmpty)
        #expect(
            heard(
                try stage.say(
                    #"["4","5","realtime:a","presence",{"event":"track","payload":{"n":1,"s":"x"}}]"#, from: 1)
            ).isEmpty)
        #expect(heard(try stage.say(#"["4","6","realtime:a","phx_leave",{}]"#, from: 1)).count == 1)
    }

    @Test func theStateComesBackWithThePresence() throws {
        let stage = try stage(Self.on("ada", #","app_state":"background""#))
        try stage.disconnect(1)
        try arrive(stage, 2)
        try stage.disconnect(2)
        #expect(stage.hub.nextDue == stage.now.monotonic + 20_000)
    }

    @Test func topicsMayHaveWindowsOfTheirOwn() throws {
        var rules = PresenceRules()
        rules.topics = [
            (TopicPattern("a"), GracePeriods(active: 120_000, inactive: 0, background: 0)),
            (TopicPattern("*"), .none),
        ]
        let stage = try stage(rules: rules)
        try stage.disconnect(1)
        #expect(stage.hub.nextDue == stage.now.monotonic + 120_000)
        try arrive(stage, 2)
        try stage.say(#"["1","5","realtime:a","app_state",{"state":"inactive"}]"#, from: 2)
        #expect(heard(try stage.disconnect(2)).count == 1)
    }

    @Test func twoTabsAreTwoMetas() throws {
        let stage = try stage()
        stage.connect(2, subject: "ada")
        try stage.join("realtime:a", 2, Self.on("ada"))
        #expect(heard(try track(stage, 2, #"{"tab":2}"#)).count == 1)
        try stage.disconnect(1)
        let left = heard(try wake(stage, after: 2000))
        #expect(left.count == 1)
        #expect(left.first?.contains(#""n":1"#) == true)
    }

    /// A key of its own makes an anonymous client known; without user and key nobody is.
    @Test func anonymousClientsAreKnownByTheirKeysAlone() throws {
        let stage = Stage(presence: PresenceRules())
        stage.connect(9)
        try stage.join("realtime:a", 9, Self.on("watcher"))
        for key in ["me", nil] {
            stage.connect(1)
            try stage.join("realtime:a", 1, Self.on(key))
            try track(stage, 1)
            try stage.disconnect(1)
            stage.connect(2)
            try stage.join("realtime:a", 2, Self.on(key))
            #expect(heard(try track(stage, 2)).count == (key == nil ? 1 : 0))
            try stage.disconnect(2)
            _ = try wake(stage, after: 10_000)
        }
    }

    @Test func afterTheHubStoodStillThereIsTimeToBeHeard() throws {
        let stage = try stage()
        _ = try wake(stage, after: 1)
        try stage.disconnect(1)
        #expect(try wake(stage, after: 30_000).isEmpty)
        try arrive(stage, 2)
        #expect(try wake(stage, after: 5000).isEmpty)
    }

    @Test func aLostTokenLeavesAPresenceAndALostRightDoesNot() throws {
        let stage = Stage(presence: PresenceRules())
        stage.connect(9)
        try stage.joinPrivate("realtime:a", 9, Self.on("watcher"))
        stage.connect(1, subject: "ada")
        try stage.joinPrivate("realtime:a", 1, Self.on("ada"))
        try track(stage, 1)
        #expect(heard(try stage.decide(.decided(.all))).count == 1)
        try stage.say(#"["1","5","realtime:a","access_token",{"access_token":"good other 20000"}]"#, from: 1)
        #expect(heard(try stage.decide(.decided([]))).count == 1)
        #expect(stage.hub.nextDue == nil)
    }

    @Test func whatIsNoStateIsAnError() throws {
        let stage = try stage()
        let said = try stage.say(#"["1","5","realtime:a","app_state",{"state":"asleep"}]"#, from: 1)
        #expect(said.count == 1)
        #expect(said.first?.contains(#""status":"error""#) == true)
        #expect(said.first?.contains("must be active, inactive or background") == true)
    }

    @Test func aBroadcastOfTheStateGoesToNobody() throws {
        let stage = Stage(presence: PresenceRules())
        for slot in Slot(1)...2 {
            stage.connect(slot)
            try stage.join("realtime:a", slot, #"{"broadcast":{"self":true,"ack":true},"presence":{"key":"k"}}"#)
        }
        let text =
            #"["1","5","realtime:a","broadcast",{"type":"broadcast","event":"app_state","payload":{"type":"app_state","state":"background"}}]"#
        #expect(
            try stage.say(text, from: 1) == [#"1 ← ["1","5","realtime:a","phx_reply",{"status":"ok","response":{}}]"#])
        try track(stage, 1)
        try stage.disconnect(1)
        #expect(stage.hub.nextDue == stage.now.monotonic + 20_000)
        let payload = Array(#"{"state":"inactive"}"#.utf8)
        let head = [3, 1, 1, 10, 9, 0, 1] + Array("16realtime:aapp_state".utf8)
        #expect(try stage.say(head.map { UInt8($0) } + payload, from: 2).count == 1)
    }

    @Test(arguments: [#"{"score":3}"#, "{}", #"{"state":"paused"}"#, #"{"state":"active","score":3}"#, #"{"state":7}"#])
    func anAppsOwnEventOfThatNameIsPassedOn(_ payload: String) throws {
        let stage = Stage()
        for slot in Slot(1)...2 {
            stage.connect(slot)
            try stage.join("realtime:a", slot)
        }
        let message = #"{"type":"broadcast","event":"app_state","payload":\#(payload)}"#
        #expect(
            try stage.say(#"["1","5","realtime:a","broadcast",\#(message)]"#, from: 1).first
                == #"2 ⇐ [null,null,"realtime:a","broadcast",\#(message)]"#)
    }

    @Test func twoTabsThatWereLostComeBackInAnyOrder() throws {
        let stage = try stage()
        stage.connect(2, subject: "ada")
        try stage.join("realtime:a", 2, Self.on("ada"))
        try track(stage, 2, #"{"tab":2}"#)
        for slot in Slot(1)...2 { try stage.disconnect(slot) }
        _ = try wake(stage, after: 1000)
        for slot in Slot(3)...4 {
            stage.connect(slot, subject: "ada")
            #expect(heard(try stage.join("realtime:a", slot, Self.on("ada"))).isEmpty)
        }
        _ = try wake(stage, after: 3000)
        #expect(heard(try track(stage, 3, #"{"tab":2}"#)).isEmpty)
        #expect(heard(try track(stage, 4)).isEmpty)
        #expect(try wake(stage, after: 3000).isEmpty)
    }

    @Test func whoJoinsAgainUnderAnotherKeyIsSomebodyElse() throws {
        let stage = try stage()
        #expect(heard(try stage.join("realtime:a", 1, ref: "4", Self.on("other"))).count == 1)
    }
}

@Suite struct TopicPatternTests {
    @Test(arguments: [
        ("room:*", "room:1", true), ("room:*", "room:", true), ("room:*", "room", false), ("*", "", true),
        ("*", "anything", true), ("a", "a", true), ("a", "ab", false), ("", "", true), ("", "a", false),
        ("*:private", "x:private", true), ("*:private", "x:private:y", false), ("a*b*c", "abc", true),
        ("a*b*c", "aXbYbZc", true), ("a*b*c", "acb", false), ("ab*ba", "aba", false), ("*é*", "caf\u{e9}!", true),
    ]) func matches(_ pattern: String, _ name: String, _ expected: Bool) {
        #expect(TopicPattern(pattern).matches(name) == expected)
    }
}
