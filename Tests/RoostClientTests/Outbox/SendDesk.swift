import Foundation
import RoostClient
import Synchronization

struct Draft: Codable, Sendable, Equatable {
    var text: String
}

/// Where the sends of a test end up: each waits until the test answers it, or until it is cancelled.
final class SendDesk: Sendable {
    struct Call: Sendable {
        let item: OutboxItem<Draft>
        private let reply: AsyncThrowingStream<Void, any Error>.Continuation

        fileprivate init(_ item: OutboxItem<Draft>, _ reply: AsyncThrowingStream<Void, any Error>.Continuation) {
            self.item = item
            self.reply = reply
        }

        func succeed() { reply.finish() }
        func fail(_ error: any Error) { reply.finish(throwing: error) }
    }

    struct Offline: Error, CustomStringConvertible {
        let description = "offline"
    }

    struct Forbidden: Error {}

    private let calls: AsyncStream<Call>
    private let desk: AsyncStream<Call>.Continuation
    private let cancellations: AsyncStream<UUID>
    private let bin: AsyncStream<UUID>.Continuation
    private let counts = Mutex((running: 0, cancelled: 0))

    init() {
        (calls, desk) = AsyncStream.makeStream(of: Call.self)
        (cancellations, bin) = AsyncStream.makeStream(of: UUID.self)
    }

    var running: Int { counts.withLock { $0.running } }
    var cancelled: Int { counts.withLock { $0.cancelled } }

    /// The next send that has begun.
    func next() async -> Call? { await calls.first { _ in true } }

    /// The next send that was cancelled.
    func nextCancelled() async -> UUID? { await cancellations.first { _ in true } }

    func send(_ item: OutboxItem<Draft>) async throws {
        counts.withLock { $0.running += 1 }
        defer { counts.withLock { $0.running -= 1 } }
        let (answer, reply) = AsyncThrowingStream.makeStream(of: Void.self)
        desk.yield(Call(item, reply))
        for try await _ in answer {}
        if Task.isCancelled {
            counts.withLock { $0.cancelled += 1 }
            bin.yield(item.localID)
            throw CancellationError()
        }
    }

    @Sendable static func classify(_ error: any Error, _ item: OutboxItem<Draft>) -> OutboxVerdict {
        error is Forbidden ? .reject("not allowed") : .retry
    }
}
