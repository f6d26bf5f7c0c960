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

    @Test(arguments: all) func whatANewerHubAddsIsReadPast(_ message: PeerMessage) throws {
        for more: [UInt8] in [[0], [200, 1, 2, 3], [255, 255, 255, 255, 255]] {
            #expect(try PeerMessage((message.encoded + more)[...]) == message)
        }
    }

    @Test(arguments: all) func aKindThatIsNotKnownIsPassedOver(_ message: PeerMessage) throws {
        var bytes = message.encoded
        for kind: UInt8 in [0, 12, 200, 255] {
            bytes[0] = kind
            #expect(try PeerMessage(bytes[...]) == nil)
        }
    }

    @Test func aFormThatIsNotKnownIsPassedOver() throws {
        // Behind the kind, whether it is private, and the topic with its length.
        let form = 3 + Self.key.topic.utf8.count
        for message in Self.all {
            switch message {
            case .broadcast, .ordered, .typing:
                var bytes = message.encoded
                bytes[form] = 99
                #expect(try PeerMessage(bytes[...]) == nil, "\(message)")
            case .appState:
                let bytes = message.encoded.dropLast(8) + "sleeping".utf8
                #expect(try PeerMessage(bytes[...]) == nil)
            default: break
            }
        }
        var typist = PeerMessage.typing(Self.key, .ended(.user("u"))).encoded
        typist[form + 1] = 99
        #expect(try PeerMessage(typist[...]) == nil)
        // A state of a member's app that is not known is none.
        let present = PeerMessage.presence(Self.key, joins: [Self.present], leaves: [])
        let changed = Array(present.encoded.dropLast(11)) + "elsewhere!".utf8 + [0]
        guard case .presence(_, let joins, _)? = try PeerMessage(changed[...]) else { throw CancellationError() }
        #expect(joins.map(\.appState) == [nil] && joins[0].payload == Self.present.payload)
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
