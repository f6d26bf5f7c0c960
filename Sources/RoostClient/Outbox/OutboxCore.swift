public import Foundation

/// An outbox without its threads: the queue, and its storage.
///
/// A payload counts only once it is stored. When it is sent or rejected, that is written afterwards; a failed write is
/// repeated with the next change.
package struct OutboxCore {
    private enum Write {
        case save(OutboxEntry)
        case remove
    }

    package private(set) var queue: OutboxQueue
    private let options: OutboxOptions
    private let storage: any OutboxStorage
    private var isLoaded = false
    /// Writes that the storage has not completed yet.
    private var pendingWrites: [UUID: Write] = [:]
    private var events: [OutboxEvent] = []

    package init(storage: any OutboxStorage, options: OutboxOptions) {
        self.storage = storage
        self.options = options
        queue = OutboxQueue(options: options)
    }

    /// Loads the storage at the first call. Until then the outbox is empty.
    package mutating func load() throws {
        guard !isLoaded else { return }
        queue = OutboxQueue(entries: try storage.load(), options: options)
        isLoaded = true
    }

    /// The events since the last call.
    package mutating func takeEvents() -> [OutboxEvent] {
        defer { events = [] }
        return events
    }

    /// Stores a payload, and queues it.
    package mutating func enqueue(_ payload: Data, localID: UUID, lane: String) throws -> OutboxAdmission {
        try load()
        guard let entry = try queue.makeEntry(localID: localID, lane: lane, payload: payload) else { return .duplicate }
        try admitEntry(entry)
        return .queued
    }

    /// Queues a failed payload again.
    ///
    /// - Returns: whether it was in the outbox and had failed.
    package mutating func retryFailed(_ localID: UUID) throws -> Bool {
        try load()
        guard let entry = queue.revivedEntry(localID) else { return false }
        try admitEntry(entry)
        return true
    }

    /// Removes a payload.
    ///
    /// - Returns: whether it was in the outbox.
    package mutating func discardPayload(_ localID: UUID) throws -> Bool {
        try load()
        guard queue[localID] != nil else { return false }
        writePending()
        try storage.remove(localID)
        pendingWrites[localID] = nil
        guard queue.discardPayload(localID) else { return false }
        events.append(.discarded(localID))
        return true
    }

    /// The payloads to send at once.
    package mutating func startAttempts(at now: ContinuousClock.Instant) -> [OutboxQueue.Attempt] {
        queue.startAttempts(at: now)
    }

    /// The server has the payload, by its response or by a change of the row.
    ///
    /// - Returns: whether it was in the outbox.
    package mutating func finishPayload(_ localID: UUID) -> Bool {
        guard queue.finishPayload(localID) else { return false }
        pendingWrites[localID] = .remove
        writePending()
        events.append(.sent(localID))
        return true
    }

    /// A send has failed, with this verdict on its error.
    package mutating func failAttempt(
        _ attempt: OutboxQueue.Attempt, _ verdict: OutboxVerdict, reason: String, at now: ContinuousClock.Instant,
        random: Double
    ) {
        switch queue.failAttempt(attempt, verdict, at: now, random: random) {
        case .overtaken: break
        case .retried(let pause): events.append(.willRetry(attempt.localID, after: pause, reason: reason))
        case .rejected(let entry):
            pendingWrites[attempt.localID] = .save(entry)
            writePending()
            events.append(.failed(attempt.localID, reason: entry.failure ?? reason))
        }
    }

    /// A send was aborted on this side: it starts again with the next batch.
    package mutating func interruptAttempt(_ attempt: OutboxQueue.Attempt) { queue.interruptAttempt(attempt) }

    /// The network is back: no lane waits any longer.
    package mutating func endPauses() { queue.endPauses() }

    private mutating func admitEntry(_ entry: OutboxEntry) throws {
        writePending()
        try storage.save(entry)
        pendingWrites[entry.localID] = nil
        queue.insertEntry(entry)
        events.append(.queued(entry.localID))
    }

    private mutating func writePending() {
        for (localID, write) in pendingWrites {
            do {
                switch write {
                case .save(let entry): try storage.save(entry)
                case .remove: try storage.remove(localID)
                }
                pendingWrites[localID] = nil
            } catch {
                return events.append(.storageFailed(reason: "\(error)"))
            }
        }
    }
}

/// An event of a payload in an outbox, identified by its `localID`.
public enum OutboxEvent: Sendable, Equatable {
    /// The payload is stored and will be sent.
    case queued(UUID)
    /// The server has the payload, which has left the outbox.
    case sent(UUID)
    /// The payload was rejected, for this reason. It stays in the outbox, is not sent again, and holds up nothing.
    case failed(UUID, reason: String)
    /// The app has discarded the payload.
    case discarded(UUID)
    /// The payload could not be sent and is retried, after this time or sooner.
    case willRetry(UUID, after: Duration, reason: String)
    /// A write to the storage failed; it is repeated with the next change. If the app ends before that, a payload that
    /// was sent is sent once more, and the server recognizes it by its `localID`.
    case storageFailed(reason: String)
    /// The consumer fell further behind than events are buffered. The sequence ends here: ask for `items` and for a new
    /// sequence.
    case overflowed
}

/// The consumers of an outbox's events. Each has its own buffer; one that falls behind is told so and ends.
struct OutboxReaders {
    private static let capacity = 1_000
    private var readers: [UUID: AsyncStream<OutboxEvent>.Continuation] = [:]

    /// Adds a consumer.
    ///
    /// - Parameter onEnd: called with its ID, on any thread, when the consumer has ended.
    mutating func addReader(onEnd: @escaping @Sendable (UUID) -> Void) -> AsyncStream<OutboxEvent> {
        let id = UUID()
        let (stream, reader) = AsyncStream.makeStream(
            of: OutboxEvent.self, bufferingPolicy: .bufferingOldest(Self.capacity))
        reader.onTermination = { _ in onEnd(id) }
        readers[id] = reader
        return stream
    }

    mutating func removeReader(_ id: UUID) { readers[id] = nil }

    /// Sends an event to all consumers.
    mutating func sendEvent(_ event: OutboxEvent) {
        for (id, reader) in readers {
            // The last place in the buffer is reserved for the overflow event.
            guard case .enqueued(let room) = reader.yield(event), room > 1 else {
                reader.yield(.overflowed)
                reader.finish()
                readers[id] = nil
                continue
            }
        }
    }
}
