import Hub
import Logging
import Synchronization
import Testing

@testable import Push

struct PushClientTests {
    final class Outcomes: Sendable {
        private let all = Mutex<[PushOutcome]>([])
        func add(_ finished: [(Push, PushOutcome)]) { all.withLock { $0 += finished.map(\.1) } }
        var now: [PushOutcome] { all.withLock { $0 } }
    }

    func client(_ outcomes: Outcomes) throws -> PushClient {
        var configuration = try Samples.configuration()
        // Nobody listens there: the lowest port, which is reserved.
        configuration.url = "https://127.0.0.1:1"
        configuration.limits.queue = 5
        return PushClient(.apns(configuration), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }) {
            outcomes.add($0)
        }
    }

    func push(milliseconds: Int64) throws -> Push {
        Push(
            to: try Samples.target(), type: .alert, priority: 10, expiration: 0, payload: [1], lane: nil,
            deadline: PushClock.now().unix + milliseconds)
    }

    @Test func whatIsStoppedIsToldSoBeforeAndAfter() throws {
        let outcomes = Outcomes()
        let client = try client(outcomes)
        #expect(client.room == 5)
        try client.send([push(milliseconds: 60_000), push(milliseconds: 60_000)])
        #expect(client.room == 3)
        client.start()
        client.stop(within: .seconds(1))
        #expect(outcomes.now == [.stopped, .stopped])
        try client.send([push(milliseconds: 60_000)])
        client.stop(within: .seconds(1))
        #expect(outcomes.now == [.stopped, .stopped, .stopped])
    }

    @Test func oneThatNeverStartedTellsToo() throws {
        let outcomes = Outcomes()
        let client = try client(outcomes)
        try client.send([push(milliseconds: 60_000)])
        client.stop(within: .seconds(1))
        #expect(outcomes.now == [.stopped])
    }

    @Test func whatCannotBeSentExpires() async throws {
        let outcomes = Outcomes()
        let client = try client(outcomes)
        client.start()
        try client.send((0..<7).map { _ in try push(milliseconds: 50) })
        while outcomes.now.count < 7 { try await Task.sleep(for: .milliseconds(5)) }
        client.stop(within: .seconds(1))
        #expect(outcomes.now == [.overflow, .overflow] + Array(repeating: .expired, count: 5))
        #expect(client.room == 5)
    }
}
