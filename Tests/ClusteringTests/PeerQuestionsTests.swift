import Cluster
import Hub
import Synchronization
import Testing

@testable import Clustering

/// Questions to other hubs: each ends once, whatever becomes of those who were asked.
@Suite struct PeerQuestionsTests {
    private final class Asker: Sendable {
        private let state = Mutex<[[PeerAnswer]]>([])
        var answers: [[PeerAnswer]] { state.withLock { $0 } }
        var done: PeerQuestions.Done { { [self] answers in state.withLock { $0.append(answers) } } }
    }

    /// What the macros of tests may call.
    private final class Questions {
        private var value = PeerQuestions()
        var count: Int { value.count }
        var deadline: Int64? { value.deadline }

        func ask(_ hubs: [HubIdentity], until deadline: Int64, for asker: PeerQuestions.Asker) -> [(
            hub: HubIdentity, id: UInt64
        )]? { value.openQuestion(hubs, until: deadline, for: asker) }

        func answered(_ id: UInt64, by hub: HubIdentity, with body: [UInt8]?) -> PeerQuestions.Finished? {
            value.receiveAnswer(id, by: hub, with: body)
        }

        func expire(at now: Int64) -> [PeerQuestions.Finished] { value.expireQuestions(at: now) }
        func isGone(_ hub: HubIdentity) -> [PeerQuestions.Finished] { value.endQuestions(hub) }
        func endAll() -> [PeerQuestions.Finished] { value.endAll() }
    }

    private static func hub(_ name: String, _ boot: UInt64 = 1) throws -> HubIdentity {
        try #require(HubIdentity(name: name, boot: boot))
    }

    private func finish(_ questions: [PeerQuestions.Finished]) {
        for case (.caller(let done), let answers) in questions.map({ ($0.asker, $0.answers) }) { done(answers) }
    }

    @Test func aQuestionEndsWithTheLastAnswer() throws {
        let (one, two) = (try Self.hub("a"), try Self.hub("b"))
        let asker = Asker()
        let questions = Questions()
        let asked = try #require(questions.ask([one, two], until: 200, for: .caller(asker.done)))
        #expect(asked.map(\.hub) == [one, two] && questions.deadline == 200)
        #expect(questions.answered(asked[0].id, by: one, with: [1]) == nil)
        let finished = try #require(questions.answered(asked[1].id, by: two, with: nil))
        finish([finished])
        #expect(asker.answers == [[PeerAnswer(hub: "a", body: [1]), PeerAnswer(hub: "b", body: nil)]])
        #expect(questions.count == 0 && questions.deadline == nil)
        #expect(questions.answered(asked[1].id, by: two, with: [2]) == nil, "twice")
    }

    @Test func whoWasNotAskedSaysNothing() throws {
        let asker = Asker()
        let questions = Questions()
        let asked = try #require(questions.ask([try Self.hub("a")], until: 200, for: .caller(asker.done)))
        #expect(questions.answered(asked[0].id, by: try Self.hub("b"), with: [1]) == nil)
        #expect(questions.answered(asked[0].id, by: try Self.hub("a", 2), with: [1]) == nil, "its next process")
        #expect(questions.answered(asked[0].id + 1, by: try Self.hub("a"), with: [1]) == nil)
        #expect(questions.count == 1)
    }

    @Test func aQuestionEndsWithItsTimeAndWithWhatItHas() throws {
        let asker = Asker()
        let questions = Questions()
        let asked = try #require(
            questions.ask([try Self.hub("a"), try Self.hub("b")], until: 200, for: .caller(asker.done)))
        _ = questions.answered(asked[1].id, by: asked[1].hub, with: [7])
        finish(questions.expire(at: 199))
        #expect(asker.answers.isEmpty)
        finish(questions.expire(at: 200))
        #expect(asker.answers == [[PeerAnswer(hub: "b", body: [7]), PeerAnswer(hub: "a", body: nil)]])
        #expect(questions.answered(asked[0].id, by: asked[0].hub, with: [1]) == nil, "late")
    }

    @Test func aQuestionEndsWithTheHubOrTheLink() throws {
        let asker = Asker()
        let questions = Questions()
        let (one, two) = (try Self.hub("a"), try Self.hub("b"))
        _ = questions.ask([one], until: 200, for: .caller(asker.done))
        _ = questions.ask([two], until: 200, for: .caller(asker.done))
        finish(questions.isGone(one))
        #expect(asker.answers == [[PeerAnswer(hub: "a", body: nil)]])
        finish(questions.endAll())
        #expect(asker.answers.count == 2 && questions.count == 0)
    }

    @Test func noMoreAreOpenThanTheBound() throws {
        let asker = Asker()
        let questions = Questions()
        let hub = try Self.hub("a")
        for _ in 0..<PeerQuestions.mostOpen {
            #expect(questions.ask([hub], until: 200, for: .caller(asker.done)) != nil)
        }
        #expect(questions.ask([hub], until: 200, for: .caller(asker.done)) == nil)
        finish(questions.expire(at: 200))
        #expect(asker.answers.count == PeerQuestions.mostOpen)
        #expect(questions.ask([hub], until: 400, for: .caller(asker.done)) != nil)
    }
}
