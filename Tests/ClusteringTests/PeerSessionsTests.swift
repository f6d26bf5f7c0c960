import Hub
import Synchronization
import TestSupport
import Testing

@testable import Clustering

/// Hubs that ask each other where clients are: what they say in bytes, and what is made of several answers.
@Suite struct PeerSessionsTests {
    private typealias Elsewhere = SessionRegistry.Elsewhere
    private typealias Found = [RecoveryKey: [Elsewhere]]

    private static let keys = (0..<5).map { RecoveryKey(high: UInt64.max - $0, low: $0) }

    /// Answers what it is told to, at once; nil for whoever is not named.
    private struct Hubs: PeerAsking {
        let answers: [String: [UInt8]]

        func askHubs(
            _ subject: PeerSubject, _ body: [UInt8], of hubs: [String]?, within patience: Duration,
            then done: @escaping @Sendable ([PeerAnswer]) -> Void
        ) {
            done((hubs ?? []).map { PeerAnswer(hub: $0, body: answers[$0]) })
        }
    }

    private func sessions() -> PeerSessions {
        PeerSessions(registry: SessionRegistry()) { points, done in done(points.map { "\($0)" }) }
    }

    private func learn(_ elsewhere: Found, _ answers: [String: [UInt8]]) -> Found? {
        let learnt = Mutex<Found?>(nil)
        sessions().askHubs(elsewhere, by: Hubs(answers: answers)) { found in learnt.withLock { $0 = found } }
        return learnt.withLock { $0 }
    }

    @Test func questionsAndAnswersComeBackAsTheyWere() throws {
        #expect(PeerSessions.decodeQuestion(PeerSessions.encodeQuestion(Self.keys)) == Self.keys)
        #expect(PeerSessions.decodeQuestion(PeerSessions.encodeQuestion([]))?.isEmpty == true)
        let words: [PeerSessions.Word] = [
            .nobody, .from(cursor: "a.1"), .unknown, .from(cursor: "b"), .from(cursor: "a.1"),
        ]
        #expect(PeerSessions.decodeAnswer(PeerSessions.encodeAnswer(words), count: 5) == words)
        #expect(PeerSessions.decodeAnswer(PeerSessions.encodeAnswer(words), count: 4) == nil, "to another question")
        #expect(PeerSessions.decodeAnswer([0, 1, 9], count: 1) == [.unknown], "a newer hub's")
        #expect(
            PeerSessions.decodeAnswer(PeerSessions.encodeAnswer(words) + [1, 2], count: 5) == words,
            "longer than it was")
    }

    @Test func anyBytesAreReadOrRefused() {
        var random = SeededGenerator(seed: 3)
        let answer = PeerSessions.encodeAnswer([.nobody, .from(cursor: "abc"), .unknown])
        for _ in 0..<20_000 {
            var (one, two) = (PeerSessions.encodeQuestion(Self.keys), answer)
            for _ in 0...Int.random(in: 0...3, using: &random) {
                one[Int.random(in: one.indices, using: &random)] = .random(in: 0...255, using: &random)
                two[Int.random(in: two.indices, using: &random)] = .random(in: 0...255, using: &random)
            }
            _ = PeerSessions.decodeQuestion(one)
            #expect(PeerSessions.decodeAnswer(two, count: 3)?.count ?? 3 == 3)
        }
    }

    @Test func eachHubSpeaksForItself() throws {
        let (a, b, c) = (
            Elsewhere(node: "a", snapshot: "1"), Elsewhere(node: "b", snapshot: "2"),
            Elsewhere(node: "c", snapshot: "3")
        )
        let key = Self.keys[0]
        let answers: [String: [UInt8]] = [
            "a": PeerSessions.encodeAnswer([.from(cursor: "x")]), "b": PeerSessions.encodeAnswer([.nobody]),
        ]
        #expect(learn([key: [a, b, c]], answers) == [key: [a.withCursor("x"), c]], "c is silent")
        #expect(learn([key: [a]], ["a": PeerSessions.encodeAnswer([.unknown])]) == [key: [a]])
        #expect(learn([key: [a]], ["a": [255, 255]]) == [key: [a]])
    }

    @Test func aHubAnswersForManyKeysAtOnce() throws {
        let registry = SessionRegistry()
        registry.restoreSessions(Self.keys.prefix(2).map { SessionRegistry.Record(key: $0, count: 1) })
        let located = Mutex(0)
        let sessions = PeerSessions(registry: registry) { points, done in
            located.withLock { $0 += points.count }
            done(points.map { "\($0)" })
        }
        let answer = Mutex<[UInt8]?>(nil)
        sessions.answerQuestion(PeerSessions.encodeQuestion(Self.keys), of: "a") { bytes in
            answer.withLock { $0 = bytes }
        }
        let words = answer.withLock { $0 }.flatMap { PeerSessions.decodeAnswer($0, count: 5) }
        #expect(words == [.from(cursor: "restart"), .from(cursor: "restart"), .nobody, .nobody, .nobody])
        #expect(located.withLock { $0 } == 1, "a point is located once")
        sessions.answerQuestion([255], of: "a") { bytes in answer.withLock { $0 = bytes } }
        #expect(answer.withLock { $0 } == nil)
    }
}
