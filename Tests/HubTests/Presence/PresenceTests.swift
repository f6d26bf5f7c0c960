import Hub
import Testing
import Wire

/// wire-protocol A6. `phx_ref`s are random in their first part; the tests write `R1`, `R2`, … in the order of appearance.
@Suite struct PresenceTests {
    private static let on = #"{"presence":{"key":"me","enabled":true}}"#

    private static func on(_ key: String) -> String { "{\"presence\":{\"key\":\"\(key)\",\"enabled\":true}}" }

    /// Replaces the refs that `frames` mention by numbered names.
    private struct RefNames {
        private var names: [String: String] = [:]

        mutating func rewrite(_ frames: [String]) throws -> [String] {
            try frames.map { frame in
                var out = frame
                var rest = frame[...]
                for marker in ["\"phx_ref\":\"", "\"phx_ref_prev\":\""] {
                    rest = frame[...]
                    while let range = rest.firstRange(of: marker) {
                        rest = rest[range.upperBound...]
                        let ref = String(rest.prefix { $0 != "\"" })
                        #expect(!ref.isEmpty)
                        let name = names[ref] ?? "R\(names.count + 1)"
                        names[ref] = name
                        out.replace("\"\(ref)\"", with: "\"\(name)\"")
                    }
                }
                return out
            }
        }
    }

    private func track(_ payload: String = #"{"n":1}"#, ref: String = "7", event: String = "track") -> String {
        #"["1","\#(ref)","realtime:a","presence",{"type":"presence","event":"\#(event)","payload":\#(payload)}]"#
    }

    private static let ok = #"1 ← ["1","7","realtime:a","phx_reply",{"status":"ok","response":{}}]"#

    @Test func stateComesAfterTheJoinEvenWhenEmpty() throws {
        let stage = Stage()
        stage.connect(1)
        stage.connect(2, .v1)
        #expect(
            try stage.join("realtime:a", 1, Self.on).dropFirst() == [
                #"1 ← ["1",null,"realtime:a","presence_state",{}]"#
            ])
        #expect(
            try stage.joinV1("realtime:a", 2, Self.on).dropFirst()
                == [#"2 ← {"topic":"realtime:a","event":"presence_state","payload":{},"ref":null}"#])
        stage.connect(3)
        #expect(try stage.join("realtime:a", 3, "{}").count == 1, "only who asks for it")
        #expect(try stage.join("realtime:a", 3, #"{"presence":{"key":"me","enabled":false}}"#).count == 1)
    }

    /// Those from before July 2025 know no `enabled`; they wait for a state before they show any difference.
    @Test(arguments: [#"{"key":""}"#, #"{"key":"me"}"#, "{}", #"{"key":"me","enabled":null}"#])
    func oldClientsAreShownPresence(_ presence: String) throws {
        let stage = Stage()
        stage.connect(1)
        let joined = try stage.join("realtime:a", 1, #"{"presence":\#(presence)}"#)
        #expect(joined.last == #"1 ← ["1",null,"realtime:a","presence_state",{}]"#)
        stage.connect(2)
        try stage.join("realtime:a", 2, #"{"presence":{"key":"","enabled":false}}"#)
        let said = try stage.say(#"["1","2","realtime:a","presence",{"event":"track","payload":{"n":1}}]"#, from: 2)
        #expect(said.contains { $0.hasPrefix("1,2 ⇐") && $0.contains("presence_diff") }, "\(said)")
    }

    @Test(arguments: [
        "null", "7", #""x""#, "[]", #"{"enabled":false}"#, #"{"enabled":"false"}"#, #"{"occupancy":true}"#,
    ])
    func presenceThatIsNotAskedForIsNotShown(_ presence: String) throws {
        let stage = Stage()
        stage.connect(1)
        let joined = try stage.join("realtime:a", 1, #"{"presence":\#(presence)}"#)
        #expect(!joined.contains { $0.contains("presence_state") })
    }

    @Test func aWholeLife() throws {
        let stage = Stage()
        var names = RefNames()
        stage.connect(1)
        stage.connect(2, .v1)
        try stage.join("realtime:a", 1, Self.on)
        try stage.joinV1("realtime:a", 2, Self.on("bob"))
        #expect(
            try names.rewrite(stage.say(track(), from: 1)) == [
                #"2 ⇐ {"topic":"realtime:a","event":"presence_diff","payload":{"joins":{"me":{"metas":[{"n":1,"phx_ref":"R1"}]}},"leaves":{}},"ref":null}"#,
                #"1 ⇐ [null,null,"realtime:a","presence_diff",{"joins":{"me":{"metas":[{"n":1,"phx_ref":"R1"}]}},"leaves":{}}]"#,
                "relay presence realtime:a +1 -0", Self.ok,
            ])
        // The same again is no news.
        #expect(try stage.say(track(), from: 1) == [Self.ok])
        // Something else is an update: one diff with the new meta in joins and the old one in leaves.
        let update =
            #"{"joins":{"me":{"metas":[{"n":2,"phx_ref":"R2","phx_ref_prev":"R1"}]}},"leaves":{"me":{"metas":[{"n":1,"phx_ref":"R1"}]}}}"#
        #expect(
            try names.rewrite(stage.say(track(#"{"n":2}"#), from: 1)) == [
                #"2 ⇐ {"topic":"realtime:a","event":"presence_diff","payload":\#(update),"ref":null}"#,
                #"1 ⇐ [null,null,"realtime:a","presence_diff",\#(update)]"#, "relay presence realtime:a +1 -1", Self.ok,
            ])
        // Python omits `type`; the event's case does not matter.
        let untrack = #"["1","7","realtime:a","presence",{"event":"UnTrack"}]"#
        #expect(
            try names.rewrite(stage.say(untrack, from: 1)).dropFirst() == [
                #"1 ⇐ [null,null,"realtime:a","presence_diff",{"joins":{},"leaves":{"me":{"metas":[{"n":2,"phx_ref":"R2","phx_ref_prev":"R1"}]}}}]"#,
                "relay presence realtime:a +0 -1", Self.ok,
            ])
        #expect(try stage.say(untrack, from: 1) == [Self.ok], "nobody to take away")
        #expect(try stage.join("realtime:a", 1, Self.on).last == #"1 ← ["1",null,"realtime:a","presence_state",{}]"#)
    }

    @Test func severalSocketsOfOneKeyAreSeveralMetas() throws {
        let stage = Stage()
        var names = RefNames()
        for slot in Slot(1)...4 { stage.connect(slot) }
        for slot in Slot(1)...3 {
            try stage.join("realtime:a", slot, Self.on(slot == 2 ? "other" : "me"))
            try stage.say(track("{\"slot\":\(slot)}"), from: slot)
        }
        let state = try names.rewrite(stage.join("realtime:a", 4, Self.on)).last
        #expect(
            state
                == #"4 ← ["1",null,"realtime:a","presence_state",{"me":{"metas":[{"slot":1,"phx_ref":"R1"},{"slot":3,"phx_ref":"R2"}]},"other":{"metas":[{"slot":2,"phx_ref":"R3"}]}}]"#
        )
        #expect(
            try names.rewrite(stage.disconnect(1)) == [
                #"2,3,4 ⇐ [null,null,"realtime:a","presence_diff",{"joins":{},"leaves":{"me":{"metas":[{"slot":1,"phx_ref":"R1"}]}}}]"#,
                "relay presence realtime:a +0 -1",
            ])
    }

    @Test func aMissingKeyIsAUUID() throws {
        for key in [#""""#, "null"] {
            let stage = Stage()
            stage.connect(1)
            try stage.join("realtime:a", 1, "{\"presence\":{\"key\":\(key),\"enabled\":true}}")
            let diff = try #require(try stage.say(track(), from: 1).first)
            let uuid = #/"joins":\{"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}":/#
            #expect(diff.contains(uuid))
        }
    }

    @Test func keysOfOtherTypesAreTheirText() throws {
        let stage = Stage()
        stage.connect(1)
        try stage.join("realtime:a", 1, #"{"presence":{"key":42,"enabled":"true"}}"#)
        #expect(try stage.say(track(), from: 1).first?.contains(#""joins":{"42":"#) == true)
    }

    @Test func keysAreToldApartByTheirBytes() throws {
        let stage = Stage()
        for slot in Slot(1)...3 { stage.connect(slot) }
        for (slot, key) in [(Slot(1), #"\u00e9"#), (2, #"e\u0301"#)] {
            try stage.join("realtime:a", slot, Self.on(key))
            try stage.say(track(), from: slot)
        }
        let state = try #require(try stage.join("realtime:a", 3, Self.on).last)
        #expect(state.utf8.count > 0 && state.occurrences(of: "metas") == 2)
    }

    /// Clients keep diffs back until a state has come (realtime-js 2.112, Dart's realtime_client 2.13).
    @Test func trackingWithoutAskingShowsTheStateAndTurnsDiffsOn() throws {
        let stage = Stage()
        stage.connect(1)
        stage.connect(2)
        try stage.join("realtime:a", 1)
        try stage.join("realtime:a", 2)
        let said = try stage.say(track(), from: 1)
        #expect(said.count == 4)
        #expect(said[0] == #"1 ← ["1",null,"realtime:a","presence_state",{}]"#)
        #expect(said[1].hasPrefix("1 ⇐"))
        let second = try stage.say(track(#"{"n":2}"#), from: 2)
        #expect(second[0].hasPrefix(#"2 ← ["1",null,"realtime:a","presence_state",{""#))
        #expect(second[1].hasPrefix("1,2 ⇐"))
        #expect(try stage.say(track(#"{"n":3}"#), from: 2)[0].hasPrefix("1,2 ⇐"), "once")
    }

    @Test(arguments: ["[]", "null", "7", #""x""#]) func whatIsNoMapIsRefused(_ payload: String) throws {
        let stage = Stage()
        stage.connect(1)
        try stage.join("realtime:a", 1, Self.on)
        #expect(
            try stage.say(track(payload), from: 1)
                == [
                    #"1 ← ["1","7","realtime:a","phx_reply",{"status":"error","response":{"reason":"Presence track payload must be a map"}}]"#
                ])
        #expect(try stage.join("realtime:a", 1, Self.on).last?.hasSuffix("{}]") == true)
    }

    @Test func aMissingPayloadIsAnEmptyMap() throws {
        let stage = Stage()
        stage.connect(1)
        try stage.join("realtime:a", 1, Self.on)
        let said = try stage.say(#"["1","7","realtime:a","presence",{"event":"TRACK"}]"#, from: 1)
        #expect(said.first?.contains(#"{"joins":{"me":{"metas":[{"phx_ref":""#) == true)
    }

    @Test(arguments: [#"{"event":"wave"}"#, "{}", "[]", #"{"event":7}"#]) func unknownEventsAreRefused(
        _ payload: String
    ) throws {
        let stage = Stage()
        stage.connect(1)
        try stage.join("realtime:a", 1, Self.on)
        #expect(
            try stage.say(#"["1","7","realtime:a","presence",\#(payload)]"#, from: 1)
                == [
                    #"1 ← ["1","7","realtime:a","phx_reply",{"status":"error","response":{"reason":"Presence event must be track or untrack"}}]"#
                ])
    }

    /// The hub's keys come last, and the last of equal keys counts.
    @Test(arguments: [
        ("{}", #"{"phx_ref":"R1"}"#), ("{ \n }", "{ \n \"phx_ref\":\"R1\"}"),
        (#"{"a":"}"}"#, #"{"a":"}","phx_ref":"R1"}"#),
        (#"{"a":{}}"#, #"{"a":{},"phx_ref":"R1"}"#), (#"{"a":1 }"#, #"{"a":1 ,"phx_ref":"R1"}"#),
    ])
    func theRefIsSplicedIn(_ payload: String, _ meta: String) throws {
        let stage = Stage()
        var names = RefNames()
        stage.connect(1)
        try stage.join("realtime:a", 1, Self.on)
        let diff = try #require(names.rewrite(stage.say(track(payload), from: 1)).first)
        #expect(diff.hasSuffix(#"{"joins":{"me":{"metas":[\#(meta)]}},"leaves":{}}]"#))
    }

    @Test func aForgedRefDoesNotCount() throws {
        let stage = Stage()
        stage.connect(1)
        try stage.join("realtime:a", 1, Self.on)
        try stage.say(track(#"{"phx_ref":"forged"}"#), from: 1)
        guard case .fanOut(let frame, _, _, _) = stage.actions.first else {
            Issue.record("no diff")
            return
        }
        let diff = try JSON(parsing: ShownFrame(frame.bytes).payload).elements[4]
        #expect(diff["joins"]?["me"]?["metas"]?.elements.first?["phx_ref"]?.string != "forged")
    }

    // MARK: Ends

    @Test func leavingAndDisconnectingEndPresence() throws {
        let stage = Stage()
        for slot in Slot(1)...3 {
            stage.connect(slot)
            try stage.join("realtime:a", slot, Self.on("k\(slot)"))
            try stage.say(track(), from: slot)
        }
        let left = try stage.say(#"["1","8","realtime:a","phx_leave",{}]"#, from: 1)
        #expect(left[0].hasPrefix(#"2,3 ⇐ [null,null,"realtime:a","presence_diff",{"joins":{},"leaves":{"k1":"#))
        #expect(left[1] == "relay presence realtime:a +0 -1")
        #expect(left.count == 4)
        #expect(
            try stage.disconnect(3)[0].hasPrefix(
                #"2 ⇐ [null,null,"realtime:a","presence_diff",{"joins":{},"leaves":{"k3":"#))
        #expect(try stage.disconnect(2) == ["relay presence realtime:a +0 -1"])
        #expect(stage.hub.channelCount == 0)
    }

    // MARK: Across loops

    @Test func presenceReachesTheOtherLoops() throws {
        let (here, there) = (Stage(loop: 0), Stage(loop: 1))
        var names = RefNames()
        here.connect(1)
        try here.join("realtime:a", 1, Self.on)
        try here.say(track(), from: 1)
        // The other loop keeps it, though nobody there is in the channel yet.
        for relay in here.relays { #expect(try there.watch { $0.applyRelay(relay) }.isEmpty) }
        #expect(there.hub.channelCount == 1)
        there.connect(1, .v1)
        #expect(
            try names.rewrite(there.joinV1("realtime:a", 1, Self.on)).last
                == #"1 ← {"topic":"realtime:a","event":"presence_state","payload":{"me":{"metas":[{"n":1,"phx_ref":"R1"}]}},"ref":null}"#
        )
        try here.say(track(#"{"n":2}"#), from: 1)
        for relay in here.relays {
            #expect(
                try names.rewrite(there.watch { $0.applyRelay(relay) }) == [
                    #"1 ⇐ {"topic":"realtime:a","event":"presence_diff","payload":{"joins":{"me":{"metas":[{"n":2,"phx_ref":"R2","phx_ref_prev":"R1"}]}},"leaves":{"me":{"metas":[{"n":1,"phx_ref":"R1"}]}}},"ref":null}"#
                ])
        }
        try there.disconnect(1)
        #expect(there.hub.channelCount == 1)
        try here.disconnect(1)
        for relay in here.relays { #expect(try there.watch { $0.applyRelay(relay) }.isEmpty) }
        #expect(there.hub.channelCount == 0)
        #expect(here.hub.channelCount == 0)
    }
}
