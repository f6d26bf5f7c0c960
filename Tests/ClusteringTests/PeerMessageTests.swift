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

    /// Numbers that somebody wrote into Redis: none is read that something added to it would overflow, or that is a loop of others here.
    @Test func numbersAreBounded() throws {
        let far = PeerMessage.MemberName(boot: 7, loop: MemberID.firstForeignLoop + 1, serial: 1)
        let most = Int(1) << 53
        for message: PeerMessage in [
            .lost(Self.key, Self.member, milliseconds: most + 1), .expected(Self.key, Self.member, milliseconds: .max),
            .claimed(Self.key, Self.member, of: .init(hub: 1, turn: .max)),
            .keep(Self.key, HistoryWish(limit: .max, lifetime: 1)),
            .claimed(Self.key, far, of: .init(hub: 1, turn: 1)), .users([.init(user: "u", count: .max)]),
        ] {
            #expect(throws: RelayReader.Malformed.self) { try PeerMessage(message.encoded[...]) }
        }
        let lost = PeerMessage.lost(Self.key, Self.member, milliseconds: most)
        #expect(try PeerMessage(lost.encoded[...]) == lost)
    }

    /// The largest that are read, and members that are this hub's own by their names.
    @Test func theLargestNumbersDoNoHarm() throws {
        var state = ClusterState(boot: 7)
        var out: [ClusterState.Output] = []
        state.logIsOpen(&out)
        let most = Int(1) << 53
        let name = PeerMessage.MemberName(boot: 7, loop: MemberID.firstForeignLoop, serial: most)
        let member = PeerMessage.PresentMember(
            member: name, ref: "r", previousRef: nil, key: "k", hasMadeKey: true, user: nil, payload: [], appState: nil)
        for message: PeerMessage in [
            .presence(Self.key, joins: [member], leaves: []), .lost(Self.key, name, milliseconds: most),
            .expected(Self.key, name, milliseconds: most), .claimed(Self.key, name, of: .init(hub: 9, turn: 0)),
            .over(Self.key, name, of: .init(hub: 9, turn: most)), .typing(Self.key, .ended(.member(name))),
        ] {
            for hub: UInt64 in [9, 7] {
                state.receiveMessage(try #require(try PeerMessage(message.encoded[...])), from: hub, at: 1 << 50, &out)
            }
        }
        for case .hear(.presence(_, let diff)) in out {
            for meta in diff.joins + diff.leaves { _ = state.names.name(of: meta.member) }
        }
        #expect(state.names.name(of: state.names.memberID(name)) == name)
    }
}
