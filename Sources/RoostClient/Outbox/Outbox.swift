public import Foundation

/// Sends the user's writes in order and until they have arrived, including those made offline.
///
/// A payload keeps its `localID` from the device to the database: the app shows it at once under that ID, the storage
/// keeps it, the server refuses a second row with it, and the change that brings the row back confirms it. So a payload
/// may be sent more than once, but exists only once.
///
/// ```swift
/// let outbox = Outbox(storage: try FileOutboxStorage(at: file)) { (item: OutboxItem<Draft>) in
///     try await api.insert(item.payload, localID: item.localID)   // "it is there already" counts as success
/// }
/// Task { try await outbox.run() }
/// try await outbox.enqueue(draft, localID: UUID(), lane: conversation.uuidString)
/// ```
///
/// - **Order**: payloads of one lane are sent one at a time, in the order of their enqueuing, across restarts. Lanes do
///   not wait for each other.
/// - **Errors** are judged by `classify`. A retry holds up its lane, with growing pauses; a rejected payload is set
///   aside as failed, until the app retries or discards it.
/// - **Nothing is lost**: `enqueue` returns once the payload is stored. Whatever happens afterwards, it is sent until
///   the server has it or has rejected it, or the app discards it.
public actor Outbox<Payload: Codable & Sendable> {
    let options: OutboxOptions
    let send: @Sendable @concurrent (OutboxItem<Payload>) async throws -> Void
    let classify: @Sendable (any Error, OutboxItem<Payload>) -> OutboxVerdict
    let time: OutboxTime
    private(set) var core: OutboxCore
    private var readers = OutboxReaders()
    private nonisolated let executor = OutboxExecutor()
    /// The state of `run()`; nil while it is not running.
    var running: OutboxRun?
    /// Other calls of `run()`, which wait for the end of the current one.
    var successors: [AsyncStream<Never>.Continuation] = []

    public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// - Parameters:
    ///   - storage: keeps payloads until they are sent. Those left from the last run are sent first.
    ///   - options: the outbox's pauses and limits.
    ///   - classify: judges an error of `send`. By default everything is retried for ever, which is fine while the
    ///     server is away, but a payload that it never accepts would hold up its lane.
    ///   - send: sends a payload to the server, and returns once the server has it. It may be called again for a
    ///     payload that has arrived, so the server must recognize it by its `localID`. It must end when its task is
    ///     cancelled.
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

    // MARK: For the app

    /// Enqueues a payload, and returns once it is stored; it does not wait for the network.
    ///
    /// A `localID` that is in the outbox, or was sent recently, is a duplicate: nothing happens, and the first payload
    /// counts.
    ///
    /// - Parameters:
    ///   - payload: the payload to send; it is stored as JSON.
    ///   - localID: identifies the payload from here to the database.
    ///   - lane: names the payloads that have to stay in order, such as the conversation's ID.
    /// - Throws: ``OutboxError/full(waiting:failed:)``, errors of encoding the payload, and errors of the storage; the
    ///   payload is not enqueued then.
    @discardableResult
    public func enqueue(_ payload: Payload, localID: UUID, lane: String = "") throws -> OutboxAdmission {
        let bytes = try JSONEncoder().encode(payload)
        return try changeCore { try $0.enqueue(bytes, localID: localID, lane: lane) }
    }

    /// Reports that the server has this payload, regardless of the response to its request. Call it for every row that
    /// arrives by a change and has a `localID`.
    /// - Returns: whether it was in the outbox.
    @discardableResult
    public func confirm(localID: UUID) throws -> Bool {
        try core.load()
        let wasThere = changeCore { $0.finishPayload(localID) }
        if wasThere { running?.cancelSoon(localID, time) }
        return wasThere
    }

    /// Sends a failed payload after all, after those that wait in its lane.
    /// - Returns: whether it was in the outbox and had failed.
    @discardableResult
    public func retry(localID: UUID) throws -> Bool {
        try changeCore { try $0.retryFailed(localID) }
    }

    /// Removes a payload, sent or not. One that is being sent may arrive nevertheless.
    /// - Returns: whether it was in the outbox.
    @discardableResult
    public func discard(localID: UUID) throws -> Bool {
        let wasThere = try changeCore { try $0.discardPayload(localID) }
        if wasThere { running?.cancelSends(localID) }
        return wasThere
    }

    /// Ends all pauses: retries are sent at once. Call it when the network is back.
    public func networkIsBack() {
        changeCore { $0.endPauses() }
    }

    /// The content of the outbox, in the order of its enqueuing. Payloads that this version of the app cannot decode
    /// are not listed; they stay in the storage, and an event reports them as failed.
    public func items() throws -> [OutboxItem<Payload>] {
        try core.load()
        return core.queue.all.compactMap { item in
            do { return try self.makeItem(item) } catch { return nil }
        }
    }

    /// One payload; nil if it is not in the outbox, or this version of the app cannot decode it.
    func storedItem(_ localID: UUID) throws -> OutboxItem<Payload>? {
        try core.load()
        guard let item = core.queue[localID] else { return nil }
        do { return try self.makeItem(item) } catch { return nil }
    }

    /// The events from now on, for one consumer. A thousand events are buffered; a consumer that falls further behind
    /// gets ``OutboxEvent/overflowed``, and the sequence ends.
    public func events() -> AsyncStream<OutboxEvent> {
        readers.addReader { [weak self] id in Task { await self?.removeReader(id) } }
    }

    private func removeReader(_ reader: UUID) { readers.removeReader(reader) }

    // MARK: For the sending loop

    func loadStorage() throws { try core.load() }

    /// Changes the outbox, passes its events to the consumers, and wakes the sending loop.
    func changeCore<Result>(_ body: (inout OutboxCore) throws -> Result) rethrows -> Result {
        defer {
            for event in core.takeEvents() { readers.sendEvent(event) }
            running?.wakeLoop()
        }
        return try body(&core)
    }

    /// The payloads to send now. Unlike `changeCore` it does not wake the sending loop, which calls it.
    func startAttempts(at now: ContinuousClock.Instant) -> [OutboxQueue.Attempt] { core.startAttempts(at: now) }

    /// The item in the app's form; throws if this version of the app cannot decode the payload.
    func makeItem(_ item: OutboxQueue.Item) throws -> OutboxItem<Payload> {
        let entry = item.entry
        return OutboxItem(
            localID: entry.localID, lane: entry.lane,
            payload: try JSONDecoder().decode(Payload.self, from: entry.payload), attempts: item.attempts,
            state: entry.failure.map { .failed($0) } ?? (item.isSending ? .sending : .waiting))
    }
}

/// One payload of an outbox, in the app's form.
public struct OutboxItem<Payload: Codable & Sendable>: Sendable {
    public enum State: Sendable, Equatable {
        case waiting
        case sending
        /// It was rejected, for the reason from `classify`. It stays until the app retries or discards it.
        case failed(String)
    }

    public let localID: UUID
    public let lane: String
    public let payload: Payload
    /// The number of sends since the app started, including a running one.
    public let attempts: Int
    public let state: State
}

extension OutboxItem: Equatable where Payload: Equatable {}

extension OutboxItem: Identifiable {
    public var id: UUID { localID }
}

/// The consequence of a send's error for the payload.
public enum OutboxVerdict: Sendable, Equatable {
    /// The same request may succeed later: no network, a server that is away or busy.
    case retry
    /// The same request cannot succeed. The reason is for the user.
    case reject(String)
}

/// The result of enqueuing a payload.
public enum OutboxAdmission: Sendable, Equatable {
    /// The payload is stored and will be sent.
    case queued
    /// A payload with this `localID` is in the outbox, or was sent recently. The first one counts.
    case duplicate
}

/// An outbox's pauses and limits.
public struct OutboxOptions: Sendable {
    /// The most payloads, including failed ones; beyond that `enqueue` throws ``OutboxError/full(waiting:failed:)``.
    public var capacity: Int
    /// The most lanes that send at the same time.
    public var concurrentSends: Int
    /// A send that takes longer is cancelled and counts as an error to be classified. It counts as running until the
    /// closure has ended, so that nothing is ever sent twice at the same time: the closure must end when cancelled, as
    /// URLSession does.
    public var sendTimeout: Duration
    /// The longest pause after the first error of a lane; it doubles with each error, up to `longestPause`. The actual
    /// pause is random within that, so that clients do not all return at once.
    public var firstPause: Duration
    /// The longest pause after an error.
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
