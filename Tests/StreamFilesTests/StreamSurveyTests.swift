import Foundation
import StreamFiles
import Streams
import Synchronization
import TestSupport
import Testing
import Wire

/// What an operator is told of the streams that are kept, and what of them is counted.
@Suite(.serialized) struct StreamSurveyTests {
    private func survey(_ stage: ServiceStage, limit: Int = 25) throws -> StreamSurvey {
        try stage.wait { stage.service.surveyStreams(limit: limit, then: $0) }
    }

    private func report(_ stage: ServiceStage, on name: String) throws -> StreamReport? {
        let name = try #require(StreamName(name))
        return try stage.wait { stage.service.inspectStream(name, limit: 2, then: $0) }
    }

    @Test func whatGrewSinceTheLastSurveyIsBusy() throws {
        let stage = try ServiceStage()
        try stage.create("large", body: String(repeating: "x", count: 500))
        try stage.create("small")
        #expect(try survey(stage).busiest.map(\.snapshot.name.text) == ["large"])
        try stage.append("12345", to: "small")
        try stage.append("678", to: "small")
        let busy = try survey(stage).busiest
        #expect(busy.map(\.snapshot.name.text) == ["small"] && busy[0].appends == 2 && busy[0].appendedAt != nil)
        let rates = try #require(busy[0].rates)
        #expect(rates.bytes > 0 && abs(rates.bytes / rates.appends - 4) < 1e-9, "8 bytes by 2 appends")
        #expect(try survey(stage).busiest.isEmpty)
    }

    @Test func theFirstSurveyKnowsNoRates() throws {
        let stage = try ServiceStage()
        try stage.create("a", body: "x")
        #expect(try survey(stage).busiest.map(\.rates) == [nil])
    }

    @Test func whatWasInTheFolderIsNoGrowth() throws {
        let stage = try ServiceStage()
        try stage.create("a")
        try stage.append("kept", to: "a")
        let next = try stage.afterKill()
        let survey = try survey(next)
        #expect(survey.busiest.isEmpty && survey.bytes == 4)
        #expect(survey.newest.map(\.appends) == [0] && survey.newest.map(\.appendedAt) == [nil])
    }

    @Test func listsAreBoundedAndInOrder() throws {
        let stage = try ServiceStage()
        for number in 1...9 { try stage.create("\(number)") }
        _ = try survey(stage)
        for number in [3, 7, 5] { try stage.append(String(repeating: "x", count: number), to: "\(number)") }
        let survey = try survey(stage, limit: 2)
        #expect(survey.busiest.map(\.snapshot.name.text) == ["7", "5"])
        #expect(survey.newest.count == 2 && survey.newest[0].createdAt >= survey.newest[1].createdAt)
        #expect(survey.streams == 9 && survey.open == 9 && survey.stalled == 0 && survey.bytes == 15)
    }

    @Test func producersAreToldWhoWroteLastFirst() throws {
        let stage = try ServiceStage()
        try stage.create("a")
        for (number, id) in ["one", "two", "three"].enumerated() {
            try stage.append("x", to: "a", by: ProducerStamp(id: Name(id), epoch: number, sequence: 0))
        }
        try stage.append("x", to: "a", by: ProducerStamp(id: "one", epoch: 0, sequence: 1))
        let report = try #require(try report(stage, on: "a"))
        #expect(report.producerCount == 3 && report.producers.map(\.id) == ["one", "three"])
        #expect(report.producers.map(\.sequence) == [1, 0] && report.producers.map(\.end) == [4, 3])
        #expect(report.line.producer?.id == "one" && report.excerpt == ["xxxx"])
        // It is known after a restart, too.
        #expect(try self.report(try stage.afterKill(), on: "a")?.producers.map(\.id) == ["one", "three"])
        #expect(try self.report(stage, on: "b") == nil)
    }

    @Test func connectionsOfProducersAreTold() throws {
        let stage = try ServiceStage()
        try stage.create("a")
        let (request, member) = (StreamHold(loop: 0, serial: -4), StreamHold(loop: 1, serial: 9))
        for hold in [request, member] { try stage.ask(.hold(hold), "a") }
        #expect(Set(try report(stage, on: "a")?.line.holds ?? []) == [request, member])
        #expect(request.isRequest && !member.isRequest)
        try eventually("the producers' figure") { stage.service.statistics.connectedProducers == 2 }
        try stage.ask(.release(request, isFault: true), "a")
        try stage.ask(.release(member, isFault: true), "a")
        let survey = try survey(stage)
        #expect(survey.stalled == 1 && survey.newest.map(\.snapshot.status) == [.stalled])
        try eventually("the figure of stalled streams") {
            stage.service.statistics.stalled == 1 && stage.service.statistics.connectedProducers == 0
        }
    }

    @Test func aCloseThatWaitsForItsRowIsTold() throws {
        let committer = LateCommitter()
        let stage = try ServiceStage {
            $0.committer = committer
            $0.closeRules = [CloseRule(pattern: nil, statement: "select $1")]
        }
        try stage.create("a", body: "x")
        var append = StreamAppend(body: [])
        append.closes = true
        append.bearer = StreamBearer(role: "service_role", claims: Array("{}".utf8))
        let name = try #require(StreamName("a"))
        stage.service.submitRequest(.append(append), on: name) { _ in }
        stage.service.submitRequest(.cancel(nil, by: nil), on: name) { _ in }
        let report = try #require(try report(stage, on: "a"))
        #expect(report.line.isClosing && report.waiting == 1 && report.line.appends == 0)
        committer.answer(.committed(row: nil))
        try eventually("the end") { try stage.status("a")?.ending?.reason == .complete }
        #expect(try self.report(stage, on: "a")?.line.isClosing == false)
        #expect(try self.report(stage, on: "a")?.line.appends == 1 && stage.statistics().appends == 1)
    }

    // MARK: Figures

    @Test func appendsAndTheirBytesAreCountedOnce() throws {
        let stage = try ServiceStage()
        try stage.create("a", body: "1234")
        let stamp = ProducerStamp(id: "w", epoch: 0, sequence: 0)
        for _ in 0..<3 { try stage.append("567", to: "a", by: stamp) }
        let statistics = try stage.statistics()
        #expect(statistics.appends == 1 && statistics.appendedBytes == 7)
    }

    @Test func refusalsAreCountedByTheirReasons() throws {
        let stage = try ServiceStage { $0.limits.bytes = 10 }
        try stage.append("x", to: "nowhere")
        try stage.create("a")
        try stage.create("a", "application/json")
        try stage.append("", to: "a")
        try stage.append(String(repeating: "x", count: 11), to: "a")
        try stage.append("x", to: "a", by: ProducerStamp(id: "w", epoch: 0, sequence: 5))
        try stage.append("x", to: "a", by: ProducerStamp(id: "w", epoch: 2, sequence: 0))
        try stage.append("x", to: "a", by: ProducerStamp(id: "w", epoch: 1, sequence: 0))
        try stage.append("", to: "a", closes: true)
        try stage.append("late", to: "a")
        let refused = try stage.statistics().refused.filter { $0.value > 0 }
        #expect(
            refused == [
                .notFound: 1, .otherConfiguration: 1, .content: 1, .tooLarge: 1, .order: 1, .fenced: 1, .ended: 1,
            ])
    }

    @Test func whoMakesRoomIsCounted() throws {
        let stage = try ServiceStage { $0.limits.count = 2 }
        try stage.create("a", closes: true)
        try stage.create("b")
        try stage.create("c")
        try stage.create("d")
        let statistics = try stage.statistics()
        #expect(statistics.evicted == 1 && statistics.refused[.full] == 1 && statistics.streams == 2)
    }
}

/// Commits nothing until a test says what became of it.
private final class LateCommitter: StreamCommitter {
    private let waiting = Mutex<[@Sendable (StreamCommitOutcome) -> Void]>([])

    func commitEnd(_ commit: StreamCommit, answer: @escaping @Sendable (StreamCommitOutcome) -> Void) {
        waiting.withLock { $0.append(answer) }
    }

    func settleAttempt(_ key: StreamCommitKey, answer: @escaping @Sendable (StreamCommitOutcome) -> Void) {}
    func forgetAttempt(_ key: StreamCommitKey) {}

    func answer(_ outcome: StreamCommitOutcome) { for answer in waiting.withLock({ $0 }) { answer(outcome) } }
}
