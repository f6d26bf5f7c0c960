import Foundation
import RoostClient
import Testing

/// What is sent when, on a time that stands still until told otherwise.
@Suite struct OutboxQueueTests {
    private let start = ContinuousClock.now

    private func id(_ number: Int) -> UUID { QueueBench.id(number) }

    @Test func aLaneSendsOneAfterTheOther() throws {
        let queue = try QueueBench(1...3)
        for number in 1...3 {
            #expect(queue.start(at: start).map(\.localID) == [id(number)])
            #expect(queue.start(at: start).isEmpty)
            #expect(queue.finish(id(number)))
        }
        #expect(queue.start(at: start).isEmpty && queue.all.isEmpty)
    }

    @Test func lanesDoNotWaitForEachOtherAndOnlySoManySend() throws {
        let queue = QueueBench(OutboxOptions(concurrentSends: 2))
        for number in 1...4 { try queue.put(number, number == 2 ? "1" : "\(number)") }
        #expect(queue.start(at: start).map(\.localID) == [id(1), id(3)])
        #expect(queue.finish(id(3)))
        #expect(queue.start(at: start).map(\.localID) == [id(4)])
        #expect(queue.finish(id(1)))
        #expect(queue.start(at: start).map(\.localID) == [id(2)])
    }

    @Test func pausesDoubleUpToTheLongestAndAreJittered() throws {
        let queue = try QueueBench(1...1)
        var now = start
        for ceiling in [1, 2, 4, 8, 15, 15] {
            let attempt = try #require(queue.start(at: now).first)
            let pause = Duration.seconds(ceiling) * 0.5
            #expect(queue.fail(attempt, .retry, at: now, random: 0.5) == .retried(after: pause))
            #expect(queue.opensNext(after: now) == now + pause)
            #expect(queue.start(at: now + pause - .nanoseconds(1)).isEmpty)
            now += pause
        }
        // What is sent starts the pauses over.
        try queue.put(2)
        #expect(queue.start(at: now).map(\.localID) == [id(1)])
        #expect(queue.finish(id(1)))
        let next = try #require(queue.start(at: now).first)
        #expect(queue.fail(next, .retry, at: now, random: 0.5) == .retried(after: .milliseconds(500)))
    }

    @Test func theNetworkEndsEveryPause() throws {
        let queue = QueueBench()
        try queue.put(1, "waits")
        try queue.put(2, "is sent")
        let attempts = queue.start(at: start)
        #expect(queue.fail(attempts[0], .retry, at: start, random: 0.9) == .retried(after: .seconds(1) * 0.9))
        queue.hurry()
        #expect(queue.start(at: start).map(\.localID) == [id(1)])
        // It was sent over the old network: its error is no reason to wait.
        #expect(queue.fail(attempts[1], .retry, at: start, random: 0.9) == .retried(after: .zero))
        let again = try #require(queue.start(at: start).first)
        #expect(queue.fail(again, .retry, at: start, random: 0.9) == .retried(after: .seconds(2) * 0.9))
    }

    @Test func aRejectedOneHoldsNobodyUp() throws {
        let queue = try QueueBench(1...2)
        let attempt = try #require(queue.start(at: start).first)
        guard case .rejected(let entry) = queue.fail(attempt, .reject("too long"), at: start, random: 0) else {
            Issue.record("not rejected")
            return
        }
        #expect(entry.localID == id(1) && entry.failure == "too long")
        #expect(queue.start(at: start).map(\.localID) == [id(2)])
        #expect(queue[id(1)]?.entry.failure == "too long")
        #expect(queue.finish(id(2)))
        #expect(queue.start(at: start).isEmpty)
    }

    @Test func aRejectedOneIsRetriedBehindTheOthers() throws {
        let queue = try QueueBench(1...3)
        let attempt = try #require(queue.start(at: start).first)
        _ = queue.fail(attempt, .reject("no"), at: start, random: 0)
        #expect(queue.revived(id(2)) == nil, "it has not failed")
        queue.insert(try #require(queue.revived(id(1))))
        for number in [2, 3, 1] {
            #expect(queue.start(at: start).map(\.localID) == [id(number)])
            #expect(queue.finish(id(number)))
        }
    }

    @Test func aKnownIDIsNotTakenTwice() throws {
        let queue = try QueueBench(1...1)
        #expect(try queue.entry(localID: id(1), lane: "another", payload: Data()) == nil)
        #expect(queue.finish(id(1)))
        #expect(try queue.entry(localID: id(1), lane: "", payload: Data()) == nil, "it was sent a moment ago")
        try queue.put(2)
        #expect(queue.discard(id(2)))
        #expect(try queue.entry(localID: id(2), lane: "", payload: Data()) != nil, "it was never sent")
    }

    @Test func whatWasSentLongAgoIsForgotten() throws {
        let queue = QueueBench(OutboxOptions(capacity: 2))
        for number in 1...3 {
            try queue.put(number)
            #expect(queue.finish(id(number)))
        }
        let known = try (1...3).map { try queue.entry(localID: id($0), lane: "", payload: Data()) == nil }
        #expect(known == [false, true, true])
    }

    @Test func aFullOneSaysWhatItHolds() throws {
        let queue = try QueueBench(1...3, OutboxOptions(capacity: 3))
        _ = queue.fail(try #require(queue.start(at: start).first), .reject("no"), at: start, random: 0)
        #expect(throws: OutboxError.full(waiting: 2, failed: 1)) {
            try queue.entry(localID: id(4), lane: "", payload: Data())
        }
        #expect(try queue.entry(localID: id(1), lane: "", payload: Data()) == nil, "a duplicate needs no room")
        #expect(queue.discard(id(1)))
        #expect(try queue.entry(localID: id(4), lane: "", payload: Data()) != nil)
    }

    @Test func aChangeConfirmsInEveryState() throws {
        let queue = try QueueBench(1...4)
        #expect(queue.finish(id(3)), "it waits in the middle")
        let first = try #require(queue.start(at: start).first)
        #expect(queue.finish(id(1)), "its answer is on the way")
        let second = try #require(queue.start(at: start).first)
        #expect(second.localID == id(2))
        #expect(queue.fail(first, .retry, at: start, random: 1) == .overtaken)
        #expect(!queue.finish(id(1)))
        #expect(queue.fail(second, .retry, at: start, random: 0.5) == .retried(after: .milliseconds(500)))
        #expect(queue.finish(id(2)), "it waits for its next attempt, and what follows does not")
        let last = try #require(queue.start(at: start).first)
        _ = queue.fail(last, .reject("500"), at: start, random: 0)
        #expect(queue.finish(last.localID), "the answer said no, and the row is there")
        #expect(queue.all.isEmpty)
    }

    @Test func aSendThatWasGivenUpBeginsAgainWithoutAPause() throws {
        let queue = try QueueBench(1...2)
        let attempt = try #require(queue.start(at: start).first)
        queue.interrupt(attempt)
        let again = try #require(queue.start(at: start).first)
        #expect(again.localID == id(1) && again != attempt)
        #expect(queue.fail(attempt, .reject("late"), at: start, random: 0) == .overtaken)
        #expect(queue[id(1)]?.isSending == true)
    }

    @Test func theOrderSurvivesWhateverTheStorageDoesWithIt() throws {
        let queue = try QueueBench(1...9)
        let restored = QueueBench(entries: queue.all.map(\.entry).shuffled())
        try restored.put(10)
        #expect(restored.all.map(\.entry.localID) == (1...10).map(id))
        for number in 1...10 {
            #expect(restored.start(at: start).map(\.localID) == [id(number)])
            #expect(restored.finish(id(number)))
        }
    }
}

/// A queue by reference, because `#expect` cannot call what changes a value.
final class QueueBench {
    private var queue: OutboxQueue

    init(_ options: OutboxOptions = OutboxOptions(), entries: [OutboxEntry] = []) {
        queue = OutboxQueue(entries: entries, options: options)
    }

    init(_ numbers: ClosedRange<Int>, _ options: OutboxOptions = OutboxOptions()) throws {
        queue = OutboxQueue(options: options)
        for number in numbers { try put(number) }
    }

    static func id(_ number: Int) -> UUID { UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, UInt8(number))) }

    var all: [OutboxQueue.Item] { queue.all }

    subscript(_ localID: UUID) -> OutboxQueue.Item? { queue[localID] }

    func put(_ number: Int, _ lane: String = "") throws {
        insert(try #require(try entry(localID: Self.id(number), lane: lane, payload: Data())))
    }

    func entry(localID: UUID, lane: String, payload: Data) throws -> OutboxEntry? {
        try queue.makeEntry(localID: localID, lane: lane, payload: payload)
    }

    func revived(_ localID: UUID) -> OutboxEntry? { queue.revivedEntry(localID) }

    func insert(_ entry: OutboxEntry) { queue.insertEntry(entry) }

    func start(at now: ContinuousClock.Instant) -> [OutboxQueue.Attempt] { queue.startAttempts(at: now) }

    func opensNext(after now: ContinuousClock.Instant) -> ContinuousClock.Instant? { queue.opensNext(after: now) }

    func finish(_ localID: UUID) -> Bool { queue.finishPayload(localID) }

    func discard(_ localID: UUID) -> Bool { queue.discardPayload(localID) }

    func fail(
        _ attempt: OutboxQueue.Attempt, _ verdict: OutboxVerdict, at now: ContinuousClock.Instant, random: Double
    ) -> OutboxQueue.Outcome {
        queue.failAttempt(attempt, verdict, at: now, random: random)
    }

    func interrupt(_ attempt: OutboxQueue.Attempt) { queue.interruptAttempt(attempt) }

    func hurry() { queue.endPauses() }
}
