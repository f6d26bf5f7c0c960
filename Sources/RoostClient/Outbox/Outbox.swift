public import Foundation

/// Sends what the user wrote, also what was written without a network, in order and until it has arrived.
///
/// A payload is known by its `localID` from the phone to the database: the app shows it at once under that id, the
/// storage keeps it, the server refuses a second row with it, and the change that brings the row back confirms it. So
/// a payload may be sent more than once and is there once.
///
/// ```swift
/// let outbox = Outbox(storage: try FileOutboxStorage(at: file)) { (item: OutboxItem<Draft>) in
///     try await api.insert(item.payload, localID: item.localID)   // "it is there already" counts as success
/// }
/// Task { try await outbox.run() }
/// try await outbox.enqueue(draft, localID: UUID(), lane: conversation.uuidString)
/// ```
///
/// - **Order**: payloads of one lane are sent one at a time, in the order in which they were put in, also after a
///   restart. Lanes do not wait for each other.
/// - **Errors** are judged by `classify`. What is to be retried holds up its lane, with growing pauses; what is rejected
///   stays aside as failed, until the app retries or discards it.
/// - **Nothing is lost**: `enqueue` returns when the payload is stored. Whatever happens after that, it is sent until the
///   server has it, has rejected it, or the app discards it.
public actor Outbox<Payload: Codable & Sendable> {
    let options: OutboxOptions
    let send: @Sendable @concurrent (OutboxItem<Payload>) async throws -> Void
    let classify: @Sendable (any Error, OutboxItem<Payload>) -> OutboxVerdict
    let time: OutboxTime
    private(set) var core: OutboxCore
    private var readers = OutboxReaders()
    private nonisolated let executor = OutboxExecutor()
    /// What exists while `run()` runs; nil while it does not.
    var running: OutboxRun?
    /// Other calls of `run()`, which wait for the end of the one that runs.
    var successors: [AsyncStream<Never>.Continuation] = []

    public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// - Parameters:
    ///   - storage: where payloads are kept until they are sent. What the last run left in it is sent first.
    ///   - options: how long the outbox waits, and how much it holds.
    ///   - classify: what an error of `send` means. Unless given, everything is retried for ever: fine while the server
    ///     is away, but a payload that it will never have would hold up its lane.
    ///   - send: gives a payload to the server, and returns when the server has it. It may be called again for a payload
    ///     that has arrived, so the server has to know it by its `localID`. It must end when its task is cancelled.
    public init(
        storage: sending any OutboxStorage, options: OutboxOptions = OutboxOptions(),
        classify: @escaping @Sendable (_ error: any Error, _ item: OutboxItem<Payload>) -> OutboxVerdict = { _, _ in
            .retry
        },
        send: @escaping @Sendable @concurrent (_ item: OutboxItem<Payload>) async throws -> Void
    ) {
        self.init(storage: storage, options: options, time: .real, classify: classify, send: send)
    }

    package init(
        storage: sending any OutboxStorage, options: OutboxOptions, time: OutboxTime,
        classify: @escaping @Sendable (any Error, OutboxItem<Payload>) -> OutboxVerdict,
        send: @escaping @Sendable @concurrent (OutboxItem<Payload>) async throws -> Void
    ) {
        core = OutboxCore(storage: storage, options: options)
        self.options = options
        self.time = time
        self.classify = classify
        self.send = send
    }

    // MARK: What the app does

    /// Takes a payload on, and returns when it is stored; it does not wait for the network.
    ///
    /// A `localID` that is in the outbox, or was sent a moment ago, is a duplicate: nothing happens, and the first
    /// payload counts.
    ///
    /// - Parameters:
    ///   - payload: what to send; it is stored as JSON.
    ///   - localID: what the payload is known by from here to the database.
    ///   - lane: names what has to stay in order, such as the conversation's id.
    /// - Throws: ``OutboxError/full(waiting:failed:)``, what encoding the payload throws, and what the storage throws;
    ///   then the payload was not taken on.
    @discardableResult
    public func enqueue(_ payload: Payload, localID: UUID, lane: String = "") throws -> OutboxAdmission {
        let bytes = try JSONEncoder().encode(payload)
        return try change { try $0.enqueue(bytes, localID: localID, lane: lane) }
    }

    /// The server has this payload, whatever became of the answer to the request: call it for every row that arrives
    /// by a change and has a `localID`.
    /// - Returns: whether it was in the outbox.
    @discardableResult
    public func confirm(localID: UUID) throws -> Bool {
        try core.load()
        let wasThere = change { $0.finish(localID) }
        if wasThere { running?.cancelSoon(localID, time) }
        return wasThere
    }

    /// Sends a failed payload after all, behind those that wait in its lane.
    /// - Returns: whether it was there and had failed.
    @discardableResult
    public func retry(localID: UUID) throws -> Bool {
        try change { try $0.retry(localID) }
    }

    /// Takes a payload out, sent or not. One that is being sent may arrive nevertheless.
    /// - Returns: whether it was in the outbox.
    @discardableResult
    public func discard(localID: UUID) throws -> Bool {
        let wasThere = try change { try $0.discard(localID) }
        if wasThere { running?.cancel(localID) }
        return wasThere
    }

    /// Ends all pauses: what has to be retried is sent at once. Call it when the network is back.
    public func networkIsBack() {
        change { $0.hurry() }
    }

    /// What the outbox holds, in the order in which it was put in. Payloads that this version of the app cannot decode
    /// are not listed; they stay in the storage, and an event says that they failed.
    public func items() throws -> [OutboxItem<Payload>] {
        try core.load()
        return core.queue.all.compactMap { item in
            do { return try self.item(item) } catch { return nil }
        }
    }

    /// One payload; nil if it is not in the outbox, or this version of the app cannot decode it.
    func item(_ localID: UUID) throws -> OutboxItem<Payload>? {
        try core.load()
        guard let item = core.queue[localID] else { return nil }
        do { return try self.item(item) } catch { return nil }
    }

    /// What happens from now on, for one reader. A thousand events are kept for it; a reader that falls behind by more
    /// gets ``OutboxEvent/overflowed``, and the sequence ends.
    public func events() -> AsyncStream<OutboxEvent> {
        readers.add { [weak self] id in Task { await self?.forget(id) } }
    }

    private func forget(_ reader: UUID) { readers.remove(reader) }

    // MARK: What runs it

    func load() throws { try core.load() }

    /// Changes the outbox, hands its events to the readers, and wakes what sends.
    func change<Result>(_ body: (inout OutboxCore) throws -> Result) rethrows -> Result {
        defer {
            for event in core.takeEvents() { readers.send(event) }
            running?.wake()
        }
        return try body(&core)
    }

    /// What is to be sent now. Unlike `change` it does not wake the loop that sends, which calls it.
    func begin(at now: ContinuousClock.Instant) -> [OutboxQueue.Attempt] { core.start(at: now) }

    /// The item as the app sees it; throws where this version of the app cannot decode the payload.
    func item(_ item: OutboxQueue.Item) throws -> OutboxItem<Payload> {
        let entry = item.entry
        return OutboxItem(
            localID: entry.localID, lane: entry.lane,
            payload: try JSONDecoder().decode(Payload.self, from: entry.payload), attempts: item.attempts,
            state: entry.failure.map { .failed($0) } ?? (item.isSending ? .sending : .waiting))
    }
}

/// One payload of an outbox, as the app sees it.
public struct OutboxItem<Payload: Codable & Sendable>: Sendable {
    public enum State: Sendable, Equatable {
        case waiting
        case sending
        /// It was rejected, for the reason that `classify` gave. It stays until the app retries or discards it.
        case failed(String)
    }

    public let localID: UUID
    public let lane: String
    public let payload: Payload
    /// How often it was sent since the app started, with the send that runs.
    public let attempts: Int
    public let state: State
}

extension OutboxItem: Equatable where Payload: Equatable {}

extension OutboxItem: Identifiable {
    public var id: UUID { localID }
}

/// What an error of a send means for the payload.
public enum OutboxVerdict: Sendable, Equatable {
    /// The same request may succeed later: no network, a server that is away or busy.
    case retry
    /// The same request cannot succeed. The reason is what the user is told.
    case reject(String)
}

/// What became of a payload that was put into an outbox.
public enum OutboxAdmission: Sendable, Equatable {
    /// It is stored and will be sent.
    case queued
    /// A payload with this `localID` is in the outbox, or left it as sent a moment ago. The first one counts.
    case duplicate
}

/// How long an outbox waits, and how much it holds.
public struct OutboxOptions: Sendable {
    /// How many payloads it holds, failed ones included; then `enqueue` throws ``OutboxError/full(waiting:failed:)``.
    public var capacity: Int
    /// How many lanes may send at the same time.
    public var concurrentSends: Int
    /// A send that takes longer is cancelled and counts as an error to be classified. It counts as running until the
    /// closure has ended, so that nothing is ever sent twice at the same time: the closure must end when cancelled, as
    /// URLSession does.
    public var sendTimeout: Duration
    /// The longest wait after the first error of a lane; it doubles with each one, up to `longestPause`. How long the
    /// wait is within that is random, so that clients do not come back all at once.
    public var firstPause: Duration
    /// The longest that a wait after an error can be.
    public var longestPause: Duration

    public init(
        capacity: Int = 1_000, concurrentSends: Int = 4, sendTimeout: Duration = .seconds(30),
        firstPause: Duration = .seconds(1), longestPause: Duration = .seconds(15)
    ) {
        self.capacity = max(1, capacity)
        self.concurrentSends = max(1, concurrentSends)
        self.sendTimeout = sendTimeout
        self.firstPause = firstPause
        self.longestPause = max(firstPause, longestPause)
    }
}
