import Hub
import TestSupport
import Testing
import Wire

@testable import Clustering

/// What hubs tell each other, in bytes and back.
@Suite struct PeerMessageTests {
    private static let key = ChannelKey(topic: "realtime:räume", isPrivate: true)
    private static let member = PeerMessage.MemberName(boot: .max, loop: 3, serial: 1 << 40)
    private static let present = PeerMessage.PresentMember(
        member: member, ref: "r", previousRef: nil, key: "k", hasMadeKey: true, user: "u", payload: Array("{}".utf8),
        appState: .background)
    private static let text = PeerMessage.BroadcastBody.text(Array(#"{"event":"e"}"#.utf8))
    private static let bytes = PeerMessage.BroadcastBody.user(
        event: "", isJSON: false, payload: [0, 255], metadata: Array("{}".utf8))

    static let all: [PeerMessage] = [
        .broadcast(key, text), .broadcast(key, bytes),
        .ordered(key, text, sender: nil, databaseID: nil), .ordered(key, bytes, sender: member, databaseID: "7"),
        .keep(key, HistoryWish(limit: 5, lifetime: 60_000)), .keep(key, nil),
        .presence(key, joins: [present, present], leaves: [.init(member: member, ref: "q")]),
        .presence(key, joins: [], leaves: []),
        .typing(key, .started(.user("u"), text)), .typing(key, .stopped(.payload([1]), bytes)),
        .typing(key, .ended(.member(member))), .typing(key, .forgotten(.user(""))),
        .lost(key, member, milliseconds: 2000), .expected(key, member, milliseconds: 5000),
        .claimed(key, member, of: .init(hub: .max, turn: 3)), .over(key, member, of: .init(hub: 0, turn: 0)),
        .appState(key, member, .inactive), .users([.init(user: "ä", count: 3), .init(user: "", count: 0)]), .users([]),
    ]

    @Test(arguments: all) func comesBackAsItWas(_ message: PeerMessage) throws {
        #expect(try PeerMessage(message.encoded[...]) == message)
    }

    @Test(arguments: all) func isReadUnlessItIsCutOff(_ message: PeerMessage) {
        let bytes = message.encoded
        for length in bytes.indices {
            #expect(throws: RelayReader.Malformed.self) { try PeerMessage(bytes[..<length]) }
        }
    }

    @Test func whatANewerHubSaysIsPassedOver() throws {
        #expect(try PeerMessage([200, 1, 2, 3]) == nil)
        // What is added to a kind goes behind what it has.
        #expect(try PeerMessage((Self.all[0].encoded + [1, 2, 3])[...]) == Self.all[0])
    }

    @Test func anyBytesAreReadOrRefused() {
        var random = SeededGenerator(seed: 5)
        for _ in 0..<20_000 {
            var bytes = Self.all.randomElement(using: &random)?.encoded ?? []
            for _ in 0...Int.random(in: 0...3, using: &random) where !bytes.isEmpty {
                bytes[Int.random(in: bytes.indices, using: &random)] = .random(in: 0...255, using: &random)
            }
            do { _ = try PeerMessage(bytes[...]) } catch {}
        }
    }
}
