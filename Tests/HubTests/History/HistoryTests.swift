import Foundation
import Hub
import TestSupport
import Testing
import Wire

/// `config.broadcast.history`: what joins are answered, and what members get.
@Suite struct HistoryTests {
    static let asked = #"{"broadcast":{"history":true}}"#

    /// Slot 1 asked for a history, slot 2 (version 2) and slot 3 (version 1) did not.
    private func room(limits: HubLimits = HubLimits()) throws -> Stage {
        let stage = Stage(
            hub: Hub(
                loop: 0, limits: limits, verifier: TestVerifier(), random: SeededGenerator(seed: 1),
                history: HistoryStore(limits: limits)))
        stage.connect(1)
        try stage.join("realtime:a", 1, Self.asked)
        stage.connect(2)
        try stage.join("realtime:a", 2)
        stage.connect(3, .v1)
        try stage.joinV1("realtime:a", 3)
        return stage
    }

    private static func after(_ id: String) -> String { #"{"broadcast":{"history":{"after":"\#(id)"}}}"# }

    /// A socket of version 2 joins; the `history` of the reply, and what came behind it.
    private func comeBack(_ stage: Stage, _ config: String, as slot: Slot = 4) throws -> (
        history: JSON, rest: [String]
    ) {
        stage.connect(slot)
        let said = try stage.join("realtime:a", slot, config)
        let reply = try JSON(parsing: Array(said[0].dropFirst("\(slot) ← ".count).utf8))
        return (try #require(reply.elements[4]["response"]?["history"]), Array(said.dropFirst()))
    }

    private func say(_ stage: Stage, _ n: Int) throws -> [String] {
        try stage.say(#"["1","9","realtime:a","broadcast",{"event":"e","payload":{"n":\#(n)}}]"#, from: 2)
    }

    private func id(_ frame: String) throws -> String {
        let tail = try #require(frame.components(separatedBy: #""history":""#).last)
        return String(tail.prefix { $0 != "\"" })
    }

    @Test(arguments: ["false", "null", "7", "[]", #""no""#]) func onlyWhereItIsAsked(_ wish: String) throws {
        let stage = try room()
        stage.connect(4)
        let said = try stage.join("realtime:a", 4, #"{"broadcast":{"history":\#(wish)}}"#)
        #expect(said == [#"4 ← ["1","1","realtime:a","phx_reply",{"status":"ok","response":{"postgres_changes":[]}}]"#])
    }

    @Test(arguments: ["true", #""true""#, "{}", #"{"limit":"x","seconds":[]}"#]) func theReplySaysWhereItIs(
        _ wish: String
    ) throws {
        let (history, rest) = try comeBack(try room(), #"{"broadcast":{"history":\#(wish)}}"#)
        #expect(history["id"]?.string?.hasSuffix(".0") == true)
        #expect(history["since"]?.int == 1_000_000)
        #expect(history["complete"] == nil, "a first join misses nothing")
        #expect(rest.isEmpty)
    }

    @Test func othersGetTheSameFramesAsEver() throws {
        let said = try say(room(), 1)
        let frame = #"{"topic":"realtime:a","event":"broadcast","payload":{"event":"e","payload":{"n":1}},"ref":null}"#
        #expect(said[0] == "3 ⇐ " + frame)
        #expect(said.count == 3)
        let marked = try #require(said.first { $0.hasPrefix("1 ⇐") })
        #expect(
            marked.hasPrefix(
                #"1 ⇐ [null,null,"realtime:a","broadcast",{"event":"e","payload":{"n":1},"meta":{"history":""#))
        #expect(marked.hasSuffix(#".1"}}]"#))
    }

    @Test func whoComesBackGetsTheRestInOrder() throws {
        let stage = try room()
        let first = try id(try #require(try say(stage, 1).first { $0.hasPrefix("1 ⇐") }))
        for n in 2...4 { _ = try say(stage, n) }
        let (history, rest) = try comeBack(stage, Self.after(first))
        #expect(history["complete"]?.bool == true)
        #expect(history["id"]?.string == first, "whoever breaks off here has to come back with the same")
        #expect(rest.map { $0.contains(#""replayed":true"#) } == [true, true, true])
        #expect(zip(2...4, rest).allSatisfy { $1.contains(#"{"n":\#($0)}"#) })
        let live = try #require(try say(stage, 5).first { $0.hasPrefix("1,4 ⇐") })
        #expect(live.contains(#"{"n":5}"#) && !live.contains("replayed"))
        #expect(try id(live).hasSuffix(".5"))
    }

    @Test func whatFellOutIsSaid() throws {
        var limits = HubLimits()
        limits.historyMessages = 2
        let stage = try room(limits: limits)
        let first = try id(try #require(try say(stage, 1).first { $0.hasPrefix("1 ⇐") }))
        for n in 2...5 { _ = try say(stage, n) }
        try stage.tick(after: 1)
        let (history, rest) = try comeBack(stage, Self.after(first))
        #expect(history["complete"]?.bool == false)
        #expect(
            history["reason"]?.string
                == "Not all of the messages that were missed are kept any more: load what you show again.")
        #expect(history["since"]?.int == 1_000_001, "nothing is missing from behind the last that fell out on")
        #expect(rest.count == 2 && rest[0].contains(#"{"n":4}"#) && rest[1].contains(#"{"n":5}"#))
        let (next, none) = try comeBack(stage, Self.after(try id(rest[1])), as: 5)
        #expect(next["complete"]?.bool == true && none.isEmpty)
    }

    @Test(arguments: ["", "x", "1", "1.", "1.-1", "1.1.1", "é.1"]) func aBadIDIsSaidToBeBad(_ bad: String) throws {
        let stage = try room()
        _ = try say(stage, 1)
        let (history, rest) = try comeBack(stage, Self.after(bad))
        #expect(history["complete"]?.bool == false)
        #expect(history["reason"]?.string?.hasPrefix("The id is not one") == true)
        #expect(rest.count == 1, "what is kept comes all the same")
    }

    @Test func anIDOfAnotherProcessIsSaidToBeOne() throws {
        let stage = try room()
        _ = try say(stage, 1)
        let (history, rest) = try comeBack(stage, Self.after("abc.1"))
        #expect(history["complete"]?.bool == false)
        #expect(history["reason"]?.string?.hasPrefix("The id is of another process") == true)
        #expect(rest.count == 1)
        let ahead = try #require(history["id"]?.string).dropLast() + "9"
        #expect(
            try comeBack(stage, Self.after(String(ahead)), as: 5).history["reason"]?.string?.hasPrefix("The id is not")
                == true)
    }

    @Test func aHubThatKeepsNothingSaysSo() throws {
        var limits = HubLimits()
        limits.historyMessages = 0
        let stage = try room(limits: limits)
        let (history, _) = try comeBack(stage, Self.asked)
        #expect(
            history.description
                == #"{"complete":false,"reason":"This hub keeps no messages: load what you show again."}"#)
        let said = try say(stage, 1)
        #expect(said.contains { $0.hasPrefix("1,4 ⇐") && !$0.contains("meta") })
    }

    @Test func theSendersOwnMetaIsKept() throws {
        let stage = try room()
        let own = #"{"meta":{"id":"m","history":"fake","replayed":true},"event":"e","payload":{}}"#
        let said = try stage.say(#"["1","9","realtime:a","broadcast",\#(own)]"#, from: 2)
        let marked = try JSON(parsing: Array(try #require(said.first { $0.hasPrefix("1 ⇐") }).dropFirst(4).utf8))
        let payload = marked.elements[4]
        #expect(payload["meta"]?["id"]?.string == "m")
        #expect(payload["meta"]?["history"]?.string?.hasSuffix(".1") == true)
        #expect(payload["meta"]?["replayed"] == nil)
        #expect(payload.description.components(separatedBy: "\"meta\"").count == 2, "a key that occurs twice")
        #expect(payload.description.components(separatedBy: "\"history\"").count == 2)
        let empty = try stage.say(#"["1","9","realtime:a","broadcast",{}]"#, from: 2)
        #expect(empty.contains { $0.hasPrefix(#"1 ⇐ [null,null,"realtime:a","broadcast",{"meta":{"history":""#) })
    }

    @Test(arguments: [true, false]) func binaryFramesCarryItInTheirMetadata(_ isJSON: Bool) throws {
        let stage = try room()
        let head: [UInt8] = [3, 1, 1, 10, 1, 0, isJSON ? 1 : 0]
        let said = try stage.say(head + Array("19realtime:ae".utf8) + Array("{}".utf8), from: 2)
        #expect(said.contains { $0.hasPrefix("1 ⇐ #4 realtime:a e") })
        let frames = stage.actions.compactMap { action -> Frame? in
            if case .fanOut(let frame, [1], _, _) = action { frame } else { nil }
        }
        let parts = try ShownFrame(try #require(frames.last).bytes).kind4()
        #expect(parts.metadata.hasPrefix(#"{"history":""#) && parts.isJSON == isJSON)
        #expect(Array(parts.payload) == Array("{}".utf8))
    }

    @Test func privateChannelsGiveItToThoseWhoMayRead() throws {
        let stage = Stage(
            hub: Hub(
                loop: 0, verifier: TestVerifier(), random: SeededGenerator(seed: 1),
                history: HistoryStore()))
        for slot in Slot(1)...3 { stage.connect(slot) }
        try stage.joinPrivate("realtime:a", 1, Self.asked)
        stage.hub.publishMessage(
            .text(Array(#"{"secret":1}"#.utf8)), to: ChannelKey(topic: "realtime:a", isPrivate: true))
        _ = try stage.watch { _ in }
        let after = Self.after("abc.0")
        #expect(try stage.joinPrivate("realtime:a", 2, after, reading: .broadcast).contains { $0.contains("secret") })
        let said = try stage.joinPrivate("realtime:a", 3, after, reading: .presence)
        #expect(said.count == 1 && !said[0].contains("secret") && !said[0].contains("history"))
        let live = try stage.watch {
            $0.publishMessage(.text(Array("{}".utf8)), to: ChannelKey(topic: "realtime:a", isPrivate: true))
        }
        #expect(live.first?.hasPrefix("1,2 ⇐") == true)
        #expect(
            try stage.join("realtime:a", 3, after).last?.contains("secret") == false, "the public channel of that name")
    }

    @Test func aMessageFromSQLIsKeptOnceHoweverManyLoopsHearIt() throws {
        let store = HistoryStore()
        let stages = (0...1).map { loop in
            Stage(
                hub: Hub(
                    loop: loop, verifier: TestVerifier(), random: SeededGenerator(seed: UInt64(loop)), history: store))
        }
        for stage in stages {
            stage.connect(1)
            try stage.join("realtime:a", 1, Self.asked)
        }
        let user = UserBroadcast(
            event: "e", encoding: .json, payload: Array("{}".utf8)[...], metadata: Array(#"{"id":"m"}"#.utf8))
        let row = DatabaseBroadcast(
            key: ChannelKey(topic: "realtime:a", isPrivate: false), id: "m", broadcast: .user(user))
        for stage in stages + stages {
            _ = try stage.watch { $0.deliverEvent(.broadcast(row)) }
        }
        #expect(store.figures.messages == 1)
        #expect(try stages[0].watch { $0.deliverEvent(.broadcast(row)) }.isEmpty)
    }
}
