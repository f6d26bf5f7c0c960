import Foundation
import RoostClient
import Testing

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
        try queue.entry(localID: localID, lane: lane, payload: payload)
    }

    func revived(_ localID: UUID) -> OutboxEntry? { queue.revived(localID) }

    func insert(_ entry: OutboxEntry) { queue.insert(entry) }

    func start(at now: ContinuousClock.Instant) -> [OutboxQueue.Attempt] { queue.start(at: now) }

    func opensNext(after now: ContinuousClock.Instant) -> ContinuousClock.Instant? { queue.opensNext(after: now) }

    func finish(_ localID: UUID) -> Bool { queue.finish(localID) }

    func discard(_ localID: UUID) -> Bool { queue.discard(localID) }

    func fail(
        _ attempt: OutboxQueue.Attempt, _ verdict: OutboxVerdict, at now: ContinuousClock.Instant, random: Double
    ) -> OutboxQueue.Outcome {
        queue.fail(attempt, verdict, at: now, random: random)
    }

    func interrupt(_ attempt: OutboxQueue.Attempt) { queue.interrupt(attempt) }

    func hurry() { queue.hurry() }
}
