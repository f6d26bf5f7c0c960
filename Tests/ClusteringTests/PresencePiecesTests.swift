import Hub
import TestSupport
import Testing
import Wire

@testable import Clustering

/// Copies of who is present that come piece by piece: of any size, over a link that falls, while members come and go.
@Suite struct PresencePiecesTests {
    static let key = ChannelKey(topic: "realtime:a", isPrivate: false)
    static let wish = HistoryWish(limit: 5, lifetime: 1000)
    /// As `ClusterWorker` has it.
    static let mostBytes = 256 << 10

    /// A hub with members, and its log: what it said is applied here in order, as on other hubs.
    private struct Owner {
        var state = ClusterState(boot: 1)
        var serial = 0
        var present: [Int] = []
        var payload = Array(#"{"name":"somebody"}"#.utf8)

        init() { state.logIsOpen() }

        /// - Returns: what goes through the log.
        mutating func say(_ relay: Relay) -> [PeerMessage] {
            var out: [ClusterState.Output] = []
            state.publishRelay(relay, by: 0, at: 0, record: { _ in nil }, wish: { _ in PresencePiecesTests.wish }, &out)
            return out.compactMap { if case .tell(let message) = $0 { message } else { nil } }
        }

        mutating func join(_ count: Int) -> [PeerMessage] {
            var diff = PresenceDiff()
            for _ in 0..<count {
                serial += 1
                present.append(serial)
                diff.joins.append(meta(serial))
            }
            return say(.presence(PresencePiecesTests.key, diff))
        }

        mutating func leave(_ serial: Int) -> [PeerMessage] {
            present.removeAll { $0 == serial }
            var diff = PresenceDiff()
            diff.leaves = [meta(serial)]
            return say(.presence(PresencePiecesTests.key, diff))
        }

        private func meta(_ serial: Int) -> PresenceMeta {
            PresenceMeta(
                member: MemberID(loop: 0, serial: serial), key: "key\(serial)", ref: Name("r\(serial)"),
                payload: payload)
        }

        func answer(_ bytes: [UInt8]) throws -> [UInt8] {
            switch try #require(try PresenceQuestion(bytes)) {
            case .digests:
                let pieces = state.pieces(of: 1)
                return PresenceAnswer.digests([
                    .init(hub: 1, pieces: pieces, digests: state.digests(of: 1, in: pieces))
                ]).encoded(at: 0)
            case .pieces(let hub, let pieces, let wanted):
                let (covered, snapshot) = state.snapshot(
                    of: hub, in: pieces, wanted, mostBytes: PresencePiecesTests.mostBytes)
                return PresenceAnswer.pieces(of: hub, pieces, covered: covered, snapshot).encoded(at: 0)
            }
        }
    }

    /// A hub that makes its copy whole.
    private struct Copier {
        var state = ClusterState(boot: 2)
        var pull: PresencePull?
        var answers = 0
        var largest = 0

        init() { state.logIsOpen() }

        mutating func hear(_ messages: [PeerMessage]) {
            var out: [ClusterState.Output] = []
            for message in messages { state.receiveMessage(message, from: 1, at: 0, &out) }
        }

        mutating func begin() -> PresenceQuestion? {
            pull = PresencePull()
            return .digests
        }

        mutating func take(_ bytes: [UInt8]) throws -> PresenceQuestion? {
            answers += 1
            largest = max(largest, bytes.count)
            var out: [ClusterState.Output] = []
            switch try #require(try PresenceAnswer(bytes, at: 0)) {
            case .digests(let hubs):
                for theirs in hubs {
                    pull?.compareDigests(theirs, with: state.digests(of: theirs.hub, in: theirs.pieces))
                }
            case .pieces(let hub, let pieces, let covered, let snapshot):
                guard pull?.receivePieces(covered, of: hub, in: pieces) == true else { return nil }
                state.replaceCopy(hub, in: pieces, covered, by: snapshot, &out)
            }
            return pull?.next
        }

        /// - Parameter most: after so many answers the link falls.
        mutating func copy(_ owner: Owner, most: Int = .max) throws {
            var question = begin()
            for _ in 0..<most {
                guard let asked = question else { return }
                question = try take(owner.answer(asked.encoded))
            }
        }
    }

    private func isEqual(_ copier: Copier, _ owner: Owner) -> Bool {
        copier.state.digest(of: 1) == owner.state.digest(of: 1) && copier.state.members.count == owner.present.count
    }

    /// The owner's own messages, as they come out of the log for it.
    private func settle(_ owner: inout Owner, _ messages: [PeerMessage]) {
        var out: [ClusterState.Output] = []
        for message in messages { owner.state.receiveMessage(message, from: 1, at: 0, &out) }
    }

    @Test func sixtyThousandMembersComeInPiecesThatALinkTakes() throws {
        var owner = Owner()
        // 12 MB.
        owner.payload = Array(("{\"text\":\"" + String(repeating: "x", count: 130) + "\"}").utf8)
        var said: [PeerMessage] = []
        for _ in 0..<60 { said += owner.join(1000) }
        settle(&owner, said)
        settle(&owner, owner.say(.keeping(Self.key)))
        var copier = Copier()
        try copier.copy(owner)
        #expect(isEqual(copier, owner))
        #expect(copier.state.snapshotOfWishes(of: 1) == [Self.key: Self.wish])
        #expect(copier.largest < 2 * Self.mostBytes, "\(copier.largest) bytes in one")
        #expect((20...200).contains(copier.answers), "\(copier.answers) answers")
        // Nothing is sent again of what is the same.
        let whole = copier.answers
        try copier.copy(owner)
        #expect(copier.answers == whole + 1)
        // One that differs costs one small piece.
        settle(&owner, owner.leave(30_000))
        #expect(!isEqual(copier, owner))
        copier.largest = 0
        try copier.copy(owner)
        #expect(isEqual(copier, owner) && copier.answers == whole + 3)
        #expect(copier.largest < 64 << 10)
    }

    @Test func itGoesOnWhereTheLinkFell() throws {
        var owner = Owner()
        settle(&owner, owner.join(20_000))
        var copier = Copier()
        try copier.copy(owner)
        let all = copier.answers
        copier = Copier()
        var falls = 0
        while !isEqual(copier, owner), falls < 100 {
            falls += 1
            try copier.copy(owner, most: 3)
        }
        #expect(isEqual(copier, owner))
        // Each time the digests, and two pieces.
        #expect(copier.answers <= all + falls + 2)
    }

    /// Each answer is true behind the message that it names, and what is said since comes behind it.
    @Test func membersComeAndGoMeanwhile() throws {
        var random = SeededGenerator(seed: 11)
        var owner = Owner()
        settle(&owner, owner.join(5_000))
        var copier = Copier()
        var question = copier.begin()
        while let asked = question {
            let answer = try owner.answer(asked.encoded)
            question = try copier.take(answer)
            for _ in 0..<20 {
                let said: [PeerMessage]
                if Bool.random(using: &random), let one = owner.present.randomElement(using: &random) {
                    said = owner.leave(one)
                } else {
                    said = owner.join(3)
                }
                settle(&owner, said)
                copier.hear(said)
            }
        }
        #expect(isEqual(copier, owner))
    }

    @Test func whatIsGoneIsTakenAway() throws {
        var owner = Owner()
        settle(&owner, owner.join(300))
        var copier = Copier()
        try copier.copy(owner)
        for serial in stride(from: 1, through: 299, by: 2) { settle(&owner, owner.leave(serial)) }
        try copier.copy(owner)
        #expect(isEqual(copier, owner) && copier.state.members.count == 150)
    }

    @Test func largePayloadsMakeSmallPieces() throws {
        var owner = Owner()
        owner.payload = Array(("{\"text\":\"" + String(repeating: "x", count: 300_000) + "\"}").utf8)
        settle(&owner, owner.join(60))
        var copier = Copier()
        try copier.copy(owner)
        #expect(isEqual(copier, owner))
        #expect(copier.largest < 2_000_000, "\(copier.largest) bytes in one")
    }

    @Test func anAnswerThatBringsNothingEndsIt() throws {
        var owner = Owner()
        settle(&owner, owner.join(300))
        var pull = PresencePull()
        let pieces = owner.state.pieces(of: 1)
        pull.compareDigests(
            .init(hub: 1, pieces: pieces, digests: owner.state.digests(of: 1, in: pieces)),
            with: [UInt64](repeating: 0, count: pieces.count))
        #expect(pull.next == .pieces(of: 1, pieces, Array(0..<pieces.count)))
        func came(_ covered: [Int], of hub: UInt64 = 1, in cut: PresencePieces, _ pull: inout PresencePull) -> Bool {
            pull.receivePieces(covered, of: hub, in: cut)
        }
        var other = pull
        let nothing = came([], in: pieces, &other)
        let anotherHub = came([0], of: 3, in: pieces, &other)
        let anotherCut = came([0], in: PresencePieces(bits: 9), &other)
        #expect(!nothing && !anotherHub && !anotherCut)
        let isWanted = came([0, 1], in: pieces, &pull)
        #expect(isWanted)
        #expect(pull.next == .pieces(of: 1, pieces, Array(2..<pieces.count)))
    }

    @Test func anAnswerThatCannotBeReadEndsIt() throws {
        let pieces = PresencePieces(bits: 2)
        func wanting() -> PresencePull {
            var pull = PresencePull()
            pull.compareDigests(.init(hub: 1, pieces: pieces, digests: [1, 2, 3, 4]), with: [0, 0, 0, 0])
            return pull
        }
        let answer = PresenceAnswer.pieces(of: 1, pieces, covered: [0], ClusterState.Snapshot())
        let bytes = answer.encoded(at: 0)
        for length in bytes.indices {
            var (pull, isRead) = (wanting(), true)
            #expect(pull.next == .pieces(of: 1, pieces, [0, 1, 2, 3]))
            do { _ = try pull.readAnswer(Array(bytes[..<length]), at: 0) } catch { isRead = false }
            #expect(!isRead)
            #expect(pull.next == nil, "the same would be asked again")
        }
        var pull = wanting()
        let read = try pull.readAnswer(bytes, at: 0)
        #expect(read == answer)
        #expect(pull.next == .pieces(of: 1, pieces, [0, 1, 2, 3]))
    }

    // MARK: Bytes

    static let member = PeerMessage.PresentMember(
        member: .init(boot: .max, loop: 3, serial: 1 << 40), ref: "r", previousRef: nil, key: "k", hasMadeKey: true,
        user: "u", payload: Array("{}".utf8), appState: .background)

    static let questions: [PresenceQuestion] = [
        .digests, .pieces(of: .max, PresencePieces(bits: 3), [0, 7, 3]), .pieces(of: 1, PresencePieces(bits: 0), []),
    ]
    static let answers: [PresenceAnswer] = [
        .digests([]),
        .digests([.init(hub: 9, pieces: PresencePieces(bits: 2), digests: [0, 1, .max, 3])]),
        .pieces(
            of: 9, PresencePieces(bits: 2), covered: [3, 1],
            .init(
                members: [.init(record: member, channel: key, hub: 9, turn: 4, lostUntil: 100)], wishes: [key: wish])),
    ]

    @Test(arguments: questions) func questionsComeBackAsTheyWere(_ question: PresenceQuestion) throws {
        #expect(try PresenceQuestion(question.encoded) == question)
        #expect(try PresenceQuestion(question.encoded + [1, 2]) == question, "longer than it was")
        for length in question.encoded.indices {
            #expect(throws: RelayReader.Malformed.self) { try PresenceQuestion(Array(question.encoded[..<length])) }
        }
    }

    @Test(arguments: answers) func answersComeBackAsTheyWere(_ answer: PresenceAnswer) throws {
        let bytes = answer.encoded(at: 10)
        #expect(try PresenceAnswer(bytes, at: 10) == answer)
        #expect(try PresenceAnswer(bytes + [1, 2], at: 10) == answer, "longer than it was")
        for length in bytes.indices {
            #expect(throws: RelayReader.Malformed.self) { try PresenceAnswer(Array(bytes[..<length]), at: 10) }
        }
    }

    @Test func whatIsNotKnownIsPassedOver() throws {
        #expect(try PresenceQuestion([200, 1]) == nil)
        #expect(try PresenceAnswer([200, 1], at: 0) == nil)
        #expect(throws: RelayReader.Malformed.self) { try PresenceQuestion([2, 1, 1, 1, 2]) }
    }
}

extension ClusterState {
    fileprivate func snapshotOfWishes(of hub: UInt64) -> [ChannelKey: HistoryWish] { wishes[hub] ?? [:] }
}
