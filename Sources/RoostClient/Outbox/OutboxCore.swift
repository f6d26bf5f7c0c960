public import Foundation

/// An outbox without its threads: the queue, and the storage that follows it.
///
/// What is put in is stored before it counts. What has left is sent or rejected already when it is written, so where
/// that write fails it is owed, and made up for with the next one.
package struct OutboxCore {
    private enum Write {
        case save(OutboxEntry)
        case remove
    }

    package private(set) var queue: OutboxQueue
    private let options: OutboxOptions
    private let storage: any OutboxStorage
    private var isLoaded = false
    private var owed: [UUID: Write] = [:]
    private var events: [OutboxEvent] = []

    package init(storage: any OutboxStorage, options: OutboxOptions) {
        self.storage = storage
        self.options = options
        queue = OutboxQueue(options: options)
    }

    /// Reads the storage, the first time. Until then the outbox is empty.
    package mutating func load() throws {
        guard !isLoaded else { return }
        queue = OutboxQueue(entries: try storage.load(), options: options)
        isLoaded = true
    }

    /// What has happened since the last call.
    package mutating func takeEvents() -> [OutboxEvent] {
        defer { events = [] }
        return events
    }

    package mutating func enqueue(_ payload: Data, localID: UUID, lane: String) throws -> OutboxAdmission {
        try load()
        guard let entry = try queue.entry(localID: localID, lane: lane, payload: payload) else { return .duplicate }
        try admit(entry)
        return .queued
    }

    /// - Returns: whether it was there and had failed.
    package mutating func retry(_ localID: UUID) throws -> Bool {
        try load()
        guard let entry = queue.revived(localID) else { return false }
        try admit(entry)
        return true
    }

    package mutating func discard(_ localID: UUID) throws -> Bool {
        try load()
        guard queue[localID] != nil else { return false }
        payUp()
        try storage.remove(localID)
        owed[localID] = nil
        return queue.discard(localID)
    }

    package mutating func start(at now: ContinuousClock.Instant) -> [OutboxQueue.Attempt] { queue.start(at: now) }

    /// The server has it: its answer says so, or its change.
    /// - Returns: whether it was in the outbox.
    package mutating func finish(_ localID: UUID) -> Bool {
        guard queue.finish(localID) else { return false }
        owed[localID] = .remove
        payUp()
        events.append(.sent(localID))
        return true
    }

    package mutating func fail(
        _ attempt: OutboxQueue.Attempt, _ verdict: OutboxVerdict, reason: String, at now: ContinuousClock.Instant,
        random: Double
    ) {
        switch queue.fail(attempt, verdict, at: now, random: random) {
        case .overtaken: break
        case .retried(let pause): events.append(.willRetry(attempt.localID, after: pause, reason: reason))
        case .rejected(let entry):
            owed[attempt.localID] = .save(entry)
            payUp()
            events.append(.failed(attempt.localID, reason: entry.failure ?? reason))
        }
    }

    package mutating func interrupt(_ attempt: OutboxQueue.Attempt) { queue.interrupt(attempt) }

    package mutating func hurry() { queue.hurry() }

    private mutating func admit(_ entry: OutboxEntry) throws {
        payUp()
        try storage.save(entry)
        owed[entry.localID] = nil
        queue.insert(entry)
        events.append(.queued(entry.localID))
    }

    private mutating func payUp() {
        for (localID, write) in owed {
            do {
                switch write {
                case .save(let entry): try storage.save(entry)
                case .remove: try storage.remove(localID)
                }
                owed[localID] = nil
            } catch {
                return events.append(.storageFailed(reason: "\(error)"))
            }
        }
    }
}

/// What happens to the payloads of an outbox. Events tell of a payload by its `localID`.
public enum OutboxEvent: Sendable, Equatable {
    /// It is stored and will be sent.
    case queued(UUID)
    /// The server has it. It has left the outbox.
    case sent(UUID)
    /// The server will not have it, for this reason. It stays, is not sent again, and holds nobody up.
    case failed(UUID, reason: String)
    /// It could not be sent and is tried again, after this time or sooner.
    case willRetry(UUID, after: Duration, reason: String)
    /// The storage did not take note of something; it is told again with the next change. If the app ends before,
    /// a payload that was sent is sent once more, and the server knows it by its `localID`.
    case storageFailed(reason: String)
    /// The reader fell behind by more events than are kept for it. The sequence ends here: ask for `items` and for a new
    /// sequence.
    case overflowed
}

/// The readers of an outbox's events. Each has a buffer of its own; one that falls behind is told so and ends.
struct OutboxReaders {
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
