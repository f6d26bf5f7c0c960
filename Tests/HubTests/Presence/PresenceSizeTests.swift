import Hub
import Testing
import Wire

/// Large channels: changes told together, lists that end somewhere, and counts.
@Suite struct PresenceSizeTests {
    private static let on = #"{"presence":{"enabled":true}}"#

    private func track(_ stage: Stage, _ slot: Slot, _ payload: String = "{}") throws -> [String] {
        try stage.say(#"["1","2","realtime:a","presence",{"event":"track","payload":\#(payload)}]"#, from: slot)
    }

    private func heard(_ said: [String], _ event: String = "presence_diff") -> [String] {
        said.filter { $0.contains(event) }
    }

    @Test func theFirstChangeIsToldAtOnceAndTheNextTogether() throws {
        var rules = PresenceRules()
        rules.mergedFrom = 3
        let stage = Stage(presence: rules)
        for slot in Slot(1)...6 {
            stage.connect(slot, subject: "u\(slot)")
            try stage.join("realtime:a", slot, Self.on)
        }
        stage.now = stage.now.advanced(by: 1000)
        #expect(heard(try track(stage, 1)).count == 1)
        for slot in Slot(2)...4 { #expect(heard(try track(stage, slot)).isEmpty) }
        // Who came and went in between is never heard of, and two changes are one.
        _ = try stage.say(#"["1","3","realtime:a","presence",{"event":"untrack"}]"#, from: 2)
        _ = try track(stage, 1, #"{"v":2}"#)
        _ = try track(stage, 1, #"{"v":3}"#)
        // Who asks now is told what the others know, and the news with them.
        stage.connect(7)
        let state = heard(try stage.join("realtime:a", 7, Self.on), "presence_state")
        #expect(state.first?.occurrences(of: "phx_ref") == 1)
        let due = try #require(stage.hub.nextDue)
        #expect(due == stage.now.monotonic + 100)
        stage.now = stage.now.advanced(by: 100)
        let diffs = heard(try stage.watch { $0.wake(at: stage.now) })
        #expect(diffs.count == 1)
        let diff = try #require(diffs.first)
        #expect(diff.hasPrefix("1,2,3,4,5,6,7 ⇐"))
        #expect(diff.occurrences(of: "\"phx_ref\"") == 4, "three joins, one leave: \(diff)")
        #expect(diff.contains(#""v":3"#) && !diff.contains(#""v":2"#))
        #expect(diff.occurrences(of: "phx_ref_prev") == 1)
    }

    @Test func whoComesToAFullListIsCountedAndNotShown() throws {
        var rules = PresenceRules()
        rules.listedMembers = 2
        let stage = Stage(presence: rules)
        stage.connect(9)
        try stage.join("realtime:a", 9, #"{"presence":{"occupancy":true}}"#)
        for slot in Slot(1)...3 {
            stage.connect(slot, subject: "u\(slot)")
            try stage.join("realtime:a", slot, Self.on)
        }
        _ = try track(stage, 1)
        _ = try track(stage, 2)
        let said = try track(stage, 3)
        #expect(heard(said).isEmpty)
        #expect(said.last == #"3 ← ["1","2","realtime:a","phx_reply",{"status":"ok","response":{"listed":false}}]"#)
        stage.now = stage.now.advanced(by: 1000)
        let counted = try stage.watch { $0.wake(at: stage.now) }
        #expect(heard(counted, "presence_occupancy").first?.contains(#"{"members":3,"keys":3}"#) == true)
        #expect(heard(try stage.say(#"["1","3","realtime:a","presence",{"event":"untrack"}]"#, from: 1)).count == 1)
        #expect(heard(try track(stage, 3)).count == 1, "there is room now")
    }

    @Test func aListEndsAtItsBytes() throws {
        var rules = PresenceRules()
        rules.listedBytes = 1000
        let stage = Stage(presence: rules)
        for slot in Slot(1)...3 {
            stage.connect(slot, subject: "u\(slot)")
            try stage.join("realtime:a", slot, Self.on)
        }
        let large = #"{"x":"\#(String(repeating: "x", count: 500))"}"#
        #expect(heard(try track(stage, 1, large)).count == 1)
        #expect(heard(try track(stage, 2, large)).isEmpty)
        #expect(heard(try track(stage, 3)).count == 1)
        // A smaller one than before has its own room.
        #expect(heard(try track(stage, 1, #"{"x":1}"#)).count == 1)
        #expect(heard(try track(stage, 2, large)).count == 1)
    }

    @Test func aPayloadHasALimit() throws {
        var rules = PresenceRules()
        rules.payloadBytes = 300
        let stage = Stage(presence: rules)
        stage.connect(1)
        try stage.join("realtime:a", 1, Self.on)
        let said = try track(stage, 1, #"{"x":"\#(String(repeating: "x", count: 300))"}"#)
        #expect(said.count == 1)
        #expect(said.first?.contains("limits.presence_bytes") == true)
    }

    @Test func countsAreToldOnceASecond() throws {
        let stage = Stage(presence: .plain)
        stage.connect(9)
        let joined = try stage.join("realtime:a", 9, #"{"presence":{"occupancy":true}}"#)
        #expect(
            joined.last
                == #"9 ← [null,null,"realtime:a","broadcast",{"event":"presence_occupancy","payload":{"members":0,"keys":0},"type":"broadcast"}]"#
        )
        for slot in Slot(1)...5 {
            stage.connect(slot)
            try stage.join("realtime:a", slot, #"{"presence":{"key":"k\#(slot % 2)"}}"#)
        }
        stage.now = stage.now.advanced(by: 5000)
        var told = 0
        for slot in Slot(1)...5 { told += heard(try track(stage, slot), "presence_occupancy").count }
        #expect(told == 1)
        #expect(try stage.disconnect(5).filter { $0.hasPrefix("9") }.isEmpty)
        stage.now = stage.now.advanced(by: 1000)
        #expect(
            try stage.watch { $0.wake(at: stage.now) } == [
                #"9 ⇐ [null,null,"realtime:a","broadcast",{"event":"presence_occupancy","payload":{"members":4,"keys":2},"type":"broadcast"}]"#
            ])
        #expect(try stage.watch { $0.wake(at: stage.now.advanced(by: 5000)) }.isEmpty, "nothing new")
    }
}
