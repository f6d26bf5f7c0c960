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
        #expect(
            said.last
                == #"3 ← ["1","2","realtime:a","phx_reply",{"status":"error","response":{"reason":"PresenceListFull: The list of this channel is full at 2 members (presence.listed_members); you are counted but not shown"}}]"#
        )
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
        let large = #"{"x":"\#(String(repeating: "x", count: 400))"}"#
        #expect(heard(try track(stage, 1, large)).count == 1)
        let refused = try track(stage, 2, large)
        #expect(heard(refused).isEmpty)
        #expect(refused.last?.contains("at 1000 bytes (presence.listed_bytes); you are counted but not shown") == true)
        #expect(heard(try track(stage, 3)).count == 1)
        // Who is shown stays so where there is no room for what it says next.
        let grown = try track(stage, 3, large)
        #expect(heard(grown).isEmpty)
        #expect(grown.last?.contains(#""status":"error""#) == true)
        #expect(grown.last?.contains("you are shown as before") == true)
        stage.connect(4)
        let state = heard(try stage.join("realtime:a", 4, Self.on), "presence_state")
        #expect(state.first?.occurrences(of: "phx_ref\"") == 2)
        // A smaller one than before has its own room.
        #expect(heard(try track(stage, 1, #"{"x":1}"#)).count == 1)
        #expect(heard(try track(stage, 2, large)).count == 1)
    }

    @Test func theListsOfAllChannelsHaveAnEndTogether() throws {
        var rules = PresenceRules.plain
        rules.totalBytes = 1000
        let stage = Stage(presence: rules)
        stage.connect(1)
        let large = #"{"x":"\#(String(repeating: "x", count: 500))"}"#
        func track(_ topic: String, _ payload: String = large) throws -> String? {
            try stage.join("realtime:\(topic)", 1, Self.on)
            return try stage.say(
                #"["1","2","realtime:\#(topic)","presence",{"event":"track","payload":\#(payload)}]"#, from: 1
            ).last
        }
        #expect(try track("a")?.contains(#""status":"ok""#) == true)
        #expect(try track("b")?.contains("at 1000 bytes (presence.total_bytes); you are counted but not shown") == true)
        #expect(try track("c", "{}")?.contains(#""status":"ok""#) == true)
        try stage.say(#"["1","3","realtime:a","phx_leave",{}]"#, from: 1)
        #expect(try track("b")?.contains(#""status":"ok""#) == true)
        try stage.disconnect(1)
        #expect(stage.hub.presenceBytes == 0)
    }

    /// Python clients are disconnected by a message of more than 1 MiB: what the hub counts is never less than what it sends.
    @Test func aStateIsNoLargerThanTheList() throws {
        var rules = PresenceRules()
        rules.listedBytes = 20_000
        rules.mergedFrom = 10
        let stage = Stage(presence: rules)
        for slot in Slot(1)...300 {
            stage.connect(slot, subject: "u\(slot)")
            // A quote takes two bytes, the bell six.
            try stage.join("realtime:a", slot, #"{"presence":{"enabled":true,"key":"\u0007\"\#(slot)"}}"#)
        }
        var shown = 0
        for round in 0..<2 {
            for slot in Slot(1)...300 {
                stage.now = stage.now.advanced(by: slot % 5 == 0 ? 200 : 0)
                let reply = try track(stage, slot, #"{"v":\#(round)}"#).last
                if round == 0, reply?.contains(#""status":"ok""#) == true { shown += 1 }
                _ = try stage.watch { $0.wake(at: stage.now) }
            }
        }
        stage.connect(900)
        let state = try #require(heard(try stage.join("realtime:a", 900, Self.on), "presence_state").first)
        #expect(state.utf8.count <= 20_000, "\(state.utf8.count) bytes")
        #expect(shown > 100, "\(shown) of them")
        #expect(state.occurrences(of: "phx_ref\"") == shown, "who was told ok is shown")
    }

    /// What is told together is told in parts where it is too much for one message.
    @Test func aDifferenceIsNoLargerThanTheList() throws {
        var rules = PresenceRules()
        rules.listedBytes = 10_000
        rules.mergedFrom = 1
        let stage = Stage(presence: rules)
        for slot in Slot(1)...8 {
            stage.connect(slot, subject: "u\(slot)")
            try stage.join("realtime:a", slot, Self.on)
        }
        func payload(_ letter: String) -> String { #"{"x":"\#(String(repeating: letter, count: 1000))"}"# }
        for slot in Slot(1)...8 { _ = try track(stage, slot, payload("a")) }
        stage.now = stage.now.advanced(by: 1000)
        _ = try stage.watch { $0.wake(at: stage.now) }
        stage.now = stage.now.advanced(by: 1000)
        for slot in Slot(1)...8 { _ = try track(stage, slot, payload("b")) }
        stage.now = stage.now.advanced(by: 1000)
        let diffs = heard(try stage.watch { $0.wake(at: stage.now) })
        #expect(diffs.count == 2)
        #expect(diffs.allSatisfy { $0.utf8.count < 11_000 })
        // Of seven, the first having been told at once: one comes for each that goes, in the same part.
        let refs = diffs.map { ($0.occurrences(of: "bbbb\""), $0.occurrences(of: "aaaa\"")) }
        #expect(refs.allSatisfy { $0 == $1 }, "\(refs)")
        #expect(refs.reduce(0) { $0 + $1.0 } == 7)
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
