import Hub
import Testing
import Wire

@testable import Push

struct SendQueueTests {
    @Test func theLatestOfALaneTakesThePlaceOfThoseThatWait() throws {
        var bench = try SenderBench()
        bench.add(try Samples.push(1, type: .liveActivity, replaces: true))
        bench.connect()
        for _ in 0..<5 { bench.add(try Samples.push(1, type: .liveActivity, replaces: true)) }
        #expect(bench.outcomes.map(\.outcome) == Array(repeating: .superseded, count: 4))
        bench.answer(503, "ServiceUnavailable")
        #expect(bench.outcomes.count == 5 && bench.outcomes.last?.outcome == .superseded)
        bench.takeAll()
        #expect(bench.outcomes.last?.outcome == .delivered)
    }

    @Test func newcomersAreTurnedAwayWhenItIsFullButNotTheLatestState() throws {
        var bench = try SenderBench { $0.limits.queue = 3 }
        bench.transport.opens = false
        let first = try Samples.push(1, type: .liveActivity, replaces: true)
        bench.add(first, try Samples.push(2, seconds: 10), try Samples.push(3), try Samples.push(4))
        #expect(bench.outcomes.map(\.outcome) == [.overflow])
        bench.add(try Samples.push(1, type: .liveActivity, replaces: true))
        #expect(bench.outcomes.last?.push.id == first.id && bench.outcomes.last?.outcome == .superseded)
        bench.now = bench.now.advanced(by: 10_000)
        bench.add(try Samples.push(5))
        #expect(bench.outcomes.last?.outcome == .expired && bench.sender.queue.count == 3)
    }

    /// An hour without Apple, with more than it can hold coming in all the time.
    @Test func doesNotGrowWhileNothingCanBeSent() throws {
        var bench = try SenderBench { $0.limits.queue = 500 }
        bench.transport.opens = false
        var sent = 0
        for turn in 0..<360 {
            bench.now = bench.now.advanced(by: 10_000)
            for number in 0..<25 {
                let push = Push(
                    to: try Samples.target(turn * 25 + number), type: .alert, priority: 5, expiration: 0,
                    payload: [1], lane: turn % 3 == 0 ? Name("shared \(number)") : nil, replaces: turn % 3 == 0,
                    deadline: bench.now.unix + Int64(number + 1) * 40_000)
                bench.transport.known[push.id.text] = push
                bench.sender.add(push, at: bench.now)
                sent += 1
            }
            bench.turn()
            let queue = bench.sender.queue
            #expect(queue.count <= 500)
            #expect(queue.deadlines.entryCount + queue.delayed.entryCount <= 2200 && queue.lanes.count <= 500)
            #expect(queue.ready.values.allSatisfy { $0.count <= 1100 })
        }
        bench.transport.opens = true
        bench.pass(seconds: 3600)
        #expect(bench.outcomes.count == sent && bench.sender.queue.lanes.isEmpty)
    }
}
