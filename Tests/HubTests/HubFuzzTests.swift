import Foundation
import Hub
import TestSupport
import Testing
import Wire

/// Damaged frames through two hubs that are wired together. Whatever comes in, what goes out is whole: well-formed frames
/// of the receiver's version, to sockets that are there, once each; what is said in a private channel reaches those alone
/// who were granted it; and when all are gone nothing is left.
@Suite struct HubFuzzTests {
    private static let runs: Int = {
        if let text = ProcessInfo.processInfo.environment["ROOST_FUZZ_RUNS"], let count = Int(text) { return count }
        #if DEBUG
            return 20_000
        #else
            return 240_000
        #endif
    }()

    private static let topics = ["realtime:a", "realtime:b", "realtime:\\u00e9", "realtime:", "phoenix"]

    /// A frame as a client would send it, before it is damaged.
    private static func frame(_ random: inout SeededGenerator, _ version: ProtocolVersion) -> (
        bytes: [UInt8], isBinary: Bool
    ) {
        func pick<T>(_ choices: [T]) -> T { choices[Int(random.next() % UInt64(choices.count))] }
        let topic = pick(topics)
        if version == .v2, random.next() % 8 == 0 {
            let bytes = topic.utf8
            return (
                [3, 1, 1, UInt8(bytes.count), 1, 0, pick([0, 1])] + Array("12".utf8) + bytes
                    + Array(pick(["e{}", "e{\"a\":[1]}", "ex"]).utf8), true
            )
        }
        let (event, payload) = pick([
            ("heartbeat", "{}"), ("phx_leave", "{}"),
            ("broadcast", #"{"type":"broadcast","event":"x","payload":{"a":"\u00e9"}}"#),
            ("presence", #"{"event":"track","payload":{"n":\#(random.next() % 4)}}"#),
            ("presence", #"{"event":"untrack"}"#),
            ("access_token", #"{"access_token":"\#(pick(["good anon 9999", "bad", "good anon 1"]))"}"#),
            (
                "phx_join",
                "{\"config\":{\"presence\":{\"key\":\"\(pick(["", "k", "é\\\""]))\",\"enabled\":true},\"broadcast\":{\"self\":true,\"ack\":true,\"replication_ready\":true}}}"
            ),
            (
                "phx_join",
                #"{"config":{"postgres_changes":[{"event":"*","schema":"public","table":"t\#(random.next() % 3)"}]}}"#
            ),
            ("phx_join", "{}"), ("phx_join", #"{"config":{"private":true}}"#),
            (
                "phx_join",
                #"{"config":{"private":true,"presence":{"enabled":true},"broadcast":{"ack":true}},"access_token":"good user 5000"}"#
            ),
            (
                "phx_join",
                #"{"config":{"private":true,"broadcast":{"replay":{"since":1,"limit":\#(random.next() % 30)}},"postgres_changes":[{"schema":"public"}]}}"#
            ),
        ])
        let ref = pick(["null", "\"1\"", "\"2\"", "3"])
        return version == .v2
            ? (Array("[\(ref),\(pick(["\"7\"", "null"])),\"\(topic)\",\"\(event)\",\(payload)]".utf8), false)
            : (
                Array(
                    "{\"topic\":\"\(topic)\",\"event\":\"\(event)\",\"payload\":\(payload),\"ref\":\"7\",\"join_ref\":\(ref)}"
                        .utf8), false
            )
    }

    private func pick(_ random: inout SeededGenerator) -> String {
        ["realtime:a", "realtime:b"][Int(random.next() % 2)]
    }

    private static func damage(_ bytes: [UInt8], _ random: inout SeededGenerator) -> [UInt8] {
        var bytes = bytes
        for _ in 0..<(1 + random.next() % 3) {
            let at = Int(random.next() % UInt64(bytes.count + 1))
            let end = min(bytes.count, at + Int(random.next() % 6))
            switch random.next() % 6 {
            case 0 where at < bytes.count: bytes[at] ^= 1 << UInt8(random.next() % 8)
            case 1: bytes.removeSubrange(at..<end)
            case 2: bytes.insert(contentsOf: bytes[at..<end], at: at)
            case 3:
                bytes.insert(
                    contentsOf: Array(
                        ["{}", "[]", "null", "\"", "\\u0000", "1e9", "\u{E9}", "7"][Int(random.next() % 8)].utf8),
                    at: at)
            case 4: bytes.insert(UInt8(truncatingIfNeeded: random.next()), at: at)
            default: bytes.removeSubrange(at...)
            }
        }
        return bytes
    }

    @Test(arguments: [UInt64(1), 2]) func whatGoesOutIsWhole(_ seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var pair = HubPair()
        let slots = 6
        for _ in 0..<(Self.runs / 2) {
            let side = Int(random.next() % 2)
            let slot = Slot(random.next() % UInt64(slots))
            guard let version = pair.connected[side][slot] else {
                try pair.connect(side, slot, random.next() % 2 == 0 ? .v1 : .v2)
                continue
            }
            switch random.next() % 64 {
            case 0: try pair.disconnect(side, slot)
            case 1: try pair.tick(side, by: Int64(random.next() % 2000))
            case 2: try pair.feed(side, isReady: random.next() % 2 == 0)
            case 3...6: try pair.answer(side, random.next())
            case 7: try pair.deliver(side, random.next())
            case 8...15: try pair.authorize(side, random.next())
            case 16...18: try pair.whisper(side, pick(&random), random.next())
            default:
                let (frame, isBinary) = Self.frame(&random, version)
                let isDamaged = random.next() % 2 > 0
                try pair.receive(side, slot, isDamaged ? Self.damage(frame, &random) : frame, isBinary)
            }
        }
        #expect(pair.secretsHeard > Self.runs / 500, "and those who may hear it do")
        #expect(pair.framesSeen > Self.runs / 8, "a run that provokes nothing proves nothing")
        #expect(
            pair.kinds.isSuperset(of: [
                "phx_reply", "phx_close", "phx_error", "system", "broadcast", "presence_state", "presence_diff",
                "postgres_changes", "binary",
            ]))
        for side in 0...1 {
            for slot in Slot(0)..<Slot(slots) where pair.connected[side][slot] != nil {
                try pair.disconnect(side, slot)
            }
        }
        for side in 0...1 {
            #expect(pair.hubs[side].channelCount == 0)
            #expect(pair.hubs[side].connectionCount == 0)
            #expect(pair.hubs[side].openQuestions.isEmpty)
            #expect(pair.hubs[side].heldBytes == 0)
            #expect(pair.groups[side].isEmpty, "every subscribe has its unsubscribe")
        }
    }
}
