import Foundation

/// The readers of an outbox's events. Each has a buffer of its own; one that falls behind is told so and ends.
struct OutboxEvents {
    private static let capacity = 1_000
    private var readers: [UUID: AsyncStream<OutboxEvent>.Continuation] = [:]

    mutating func add(onEnd: @escaping @Sendable (UUID) -> Void) -> AsyncStream<OutboxEvent> {
        let id = UUID()
        let (stream, reader) = AsyncStream.makeStream(
            of: OutboxEvent.self, bufferingPolicy: .bufferingOldest(Self.capacity))
        reader.onTermination = { _ in onEnd(id) }
        readers[id] = reader
        return stream
    }

    mutating func remove(_ id: UUID) { readers[id] = nil }

    mutating func tell(_ event: OutboxEvent) {
        for (id, reader) in readers {
            // The last place is for saying that there is no more.
            guard case .enqueued(let room) = reader.yield(event), room > 1 else {
                reader.yield(.overflowed)
                reader.finish()
                readers[id] = nil
                continue
            }
        }
    }
}
