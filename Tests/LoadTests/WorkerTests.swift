import Glibc
import Testing

@testable import roost_load

@Suite struct WorkerTests {
    @Test func messagesGoThroughTheLine() throws {
        var ends: [Int32] = [-1, -1]
        #expect(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        defer { for end in ends { close(end) } }
        let parent = Link(descriptor: ends[0]), worker = Link(descriptor: ends[1])
        let target = try Target(url: "wss://127.0.0.1:1", path: nil)
        var plan = LoadPlan(scenario: .soak, target: target, dialect: Dialect(), run: 3, seed: 4, sockets: 5)
        plan.rows = RowPlan(
            conninfo: "dbname=x", schema: "public", table: "t", filterColumn: "c", insert: "insert", writers: 2,
            tokens: ["a", "b"])
        try parent.send(ParentMessage.plan(plan, worker: 1))
        guard case .plan(let heard, worker: 1)? = try worker.receive(ParentMessage.self) else {
            Issue.record("That was no plan.")
            return
        }
        #expect(heard.rows?.tokens == ["a", "b"])
        #expect(heard.target.isSecure)
        var result = WorkerResult(count: DeliveryCount(delivered: 7))
        result.latencies[.commit] = HistogramDump(values: [5], counts: [9])
        try worker.send(WorkerMessage.result(result))
        guard case .result(let told)? = try parent.receive(WorkerMessage.self) else {
            Issue.record("That was no result.")
            return
        }
        #expect(told.count.delivered == 7)
        #expect(told.latencies[.commit]?.counts == [9])
    }

    @Test func aClosedLineIsTheEnd() throws {
        var ends: [Int32] = [-1, -1]
        #expect(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        close(ends[1])
        defer { close(ends[0]) }
        #expect(try Link(descriptor: ends[0]).receive(WorkerMessage.self) == nil)
    }

    @Test func rowsAreJudgedByTheirCommits() {
        let log = CommitLog(ticks: 4, writers: 1)
        #expect(log.begins(0, writer: 0))
        #expect(log.begins(1, writer: 0))
        log.committed(0, at: 77)
        log.failed(1, in: 1, LoadFailure("no"))
        var outcomes: [String] = []
        log.outcomes(of: 0..<3) { outcomes.append("\($0)") }
        #expect(outcomes == ["committed(at: 77)", "failed", "pending"])
        log.stop()
        #expect(!log.begins(2, writer: 0))
        #expect(log.begun == [2])
        #expect(log.failures == [1: 1])
    }
}
