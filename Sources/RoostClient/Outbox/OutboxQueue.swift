package import Foundation

/// Decides what an outbox sends next. Pure: it has no I/O and no clock; time and randomness are passed in.
///
/// The order within a lane is that of its entries' positions. The first entry that has not failed is sent until it is
/// done with, and only then the next.
package struct OutboxQueue {
    /// A send that is about to start.
    package struct Attempt: Sendable, Hashable {
        package let localID: UUID
        /// The unique number of the attempt.
        package let number: Int
    }

    /// An entry and the state of its sending.
    package struct Item: Sendable {
        package var entry: OutboxEntry
        package var attempts = 0
        /// The number of the running attempt; nil if there is none.
        package fileprivate(set) var attempt: Int?
        package var isSending: Bool { attempt != nil }
    }

    /// The result of a failed send.
    package enum Outcome: Sendable, Equatable {
        case rejected(OutboxEntry)
        case retried(after: Duration)
        /// The payload has left the outbox, or another send of it has started.
        case overtaken
    }

    private let options: OutboxOptions
    private var items: [UUID: Item] = [:]
    private var lanes: [String: OutboxLane] = [:]
    /// The most recently sent payloads, to recognize duplicates.
    private var finished: RecentIDs
    private var nextPosition: Int64 = 0
    /// The number of all attempts, of running ones, and of failed items.
    private var attempts = 0
    private var sending = 0
    private var failed = 0

    package init(entries: [OutboxEntry] = [], options: OutboxOptions = OutboxOptions()) {
        self.options = options
        finished = RecentIDs(capacity: options.capacity)
        for entry in entries.sorted(by: { $0.position < $1.position }) { insertEntry(entry) }
    }

    /// All items, in the order of their enqueuing.
    package var all: [Item] { items.values.sorted { $0.entry.position < $1.entry.position } }

    package subscript(_ localID: UUID) -> Item? { items[localID] }

    // MARK: Enqueuing

    /// The entry to store for a payload, and to insert once it is stored; nil for a duplicate.
    package func makeEntry(localID: UUID, lane: String, payload: Data) throws(OutboxError) -> OutboxEntry? {
        guard items[localID] == nil, !finished.contains(localID) else { return nil }
        guard items.count < options.capacity else {
            throw .full(waiting: items.count - failed, failed: failed)
        }
        return OutboxEntry(localID: localID, lane: lane, position: nextPosition, payload: payload, failure: nil)
    }

    /// The entry to store for a failed one that is sent after all, after those that wait.
    package func revivedEntry(_ localID: UUID) -> OutboxEntry? {
        guard var entry = items[localID]?.entry, entry.failure != nil else { return nil }
        entry.failure = nil
        entry.position = nextPosition
        return entry
    }

    /// Adds a stored entry, or replaces the one with the same `localID`.
    package mutating func insertEntry(_ entry: OutboxEntry) {
        if items[entry.localID]?.entry.failure != nil { failed -= 1 }
        items[entry.localID] = Item(entry: entry)
        nextPosition = max(nextPosition, entry.position + 1)
        if entry.failure == nil {
            lanes[entry.lane, default: OutboxLane()].waiting.append(entry.localID)
        } else {
            failed += 1
        }
    }

    // MARK: Sending

    /// The payloads to send at once: the oldest among the first of their lanes.
    package mutating func startAttempts(at now: ContinuousClock.Instant) -> [Attempt] {
        let room = options.concurrentSends - sending
        guard room > 0 else { return [] }
        let ready = lanes.values.compactMap { $0.isReady(at: now) ? $0.waiting.first.flatMap { items[$0] } : nil }
        return ready.sorted { $0.entry.position < $1.entry.position }.prefix(room).map { startAttempt($0) }
    }

    /// The next time at which more can be sent; nil if that depends on an event.
    package func opensNext(after now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        lanes.values.compactMap { $0.isSending || $0.waiting.isEmpty ? nil : $0.opensAt }.filter { $0 > now }.min()
    }

    /// The server has the payload.
    ///
    /// - Returns: whether it was in the outbox.
    package mutating func finishPayload(_ localID: UUID) -> Bool {
        guard removeItem(localID) else { return false }
        finished.insert(localID)
        return true
    }

    /// Removes a payload that was not sent, or may not have been.
    ///
    /// - Returns: whether it was in the outbox.
    package mutating func discardPayload(_ localID: UUID) -> Bool { removeItem(localID) }

    /// A send has failed, with this verdict on its error.
    ///
    /// - Parameter random: a random number in 0..<1, for the pause.
    package mutating func failAttempt(
        _ attempt: Attempt, _ verdict: OutboxVerdict, at now: ContinuousClock.Instant, random: Double
    ) -> Outcome {
        guard var item = stopAttempt(attempt) else { return .overtaken }
        let lane = item.entry.lane
        switch verdict {
        case .retry:
            return .retried(after: lanes[lane]?.startPause(at: now, options: options, random: random) ?? .zero)
        case .reject(let reason):
            item.entry.failure = reason
            items[attempt.localID] = item
            failed += 1
            leaveLane(lane, attempt.localID, wasSending: true)
            return .rejected(item.entry)
        }
    }

    /// A send was aborted on this side: it starts again with the next batch.
    package mutating func interruptAttempt(_ attempt: Attempt) {
        guard let item = stopAttempt(attempt) else { return }
        lanes[item.entry.lane]?.isSending = false
    }

    /// The network is back: no lane waits any longer.
    package mutating func endPauses() {
        for name in lanes.keys { lanes[name]?.endPause() }
    }

    private mutating func startAttempt(_ item: Item) -> Attempt {
        var item = item
        attempts += 1
        item.attempts += 1
        item.attempt = attempts
        items[item.entry.localID] = item
        lanes[item.entry.lane]?.sendStarted()
        sending += 1
        return Attempt(localID: item.entry.localID, number: attempts)
    }

    private mutating func stopAttempt(_ attempt: Attempt) -> Item? {
        guard var item = items[attempt.localID], item.attempt == attempt.number else { return nil }
        item.attempt = nil
        items[attempt.localID] = item
        sending -= 1
        return item
    }

    private mutating func removeItem(_ localID: UUID) -> Bool {
        guard let item = items.removeValue(forKey: localID) else { return false }
        if item.isSending { sending -= 1 }
        if item.entry.failure == nil {
            leaveLane(item.entry.lane, localID, wasSending: item.isSending)
        } else {
            failed -= 1
        }
        return true
    }

    private mutating func leaveLane(_ name: String, _ localID: UUID, wasSending: Bool) {
        guard var lane = lanes[name] else { return }
        // Only the first was sent, and the lane's pause was for its sake.
        if wasSending || lane.waiting.first == localID { lane.firstSettled() }
        lane.waiting.removeAll { $0 == localID }
        lanes[name] = lane.waiting.isEmpty ? nil : lane
    }
}

/// The waiting payloads of one lane, in order, and the time at which the first may be sent.
struct OutboxLane {
    /// Payloads to send, in order, including one that is being sent; failed ones are not in it.
    var waiting: [UUID] = []
    var isSending = false
    /// Nothing is sent before this time; nil sends at once.
    var opensAt: ContinuousClock.Instant?
    /// Set if the network came back during a send. If that send fails, it belonged to the old network, and the next one
    /// does not wait.
    private var isHurried = false
    /// The longest next pause; nil for the first pause.
    private var ceiling: Duration?

    func isReady(at now: ContinuousClock.Instant) -> Bool {
        !isSending && !waiting.isEmpty && opensAt.map { $0 <= now } ?? true
    }

    /// A send starts.
    mutating func sendStarted() {
        isSending = true
        opensAt = nil
        isHurried = false
    }

    /// The first payload is sent or rejected; the next one is sent without a pause.
    mutating func firstSettled() {
        isSending = false
        opensAt = nil
        ceiling = nil
    }

    /// A send failed and will be retried.
    ///
    /// - Returns: the pause of the lane.
    mutating func startPause(at now: ContinuousClock.Instant, options: OutboxOptions, random: Double) -> Duration {
        isSending = false
        let ceiling = self.ceiling ?? options.firstPause
        self.ceiling = min(ceiling * 2, options.longestPause)
        let pause = isHurried ? .zero : ceiling * random
        isHurried = false
        opensAt = now + pause
        return pause
    }

    /// The network is back: the lane waits no longer.
    mutating func endPause() {
        opensAt = nil
        ceiling = nil
        isHurried = isSending
    }
}

/// The most recently inserted IDs, up to a limit: a set that forgets.
struct RecentIDs {
    private var order: [UUID] = []
    private var members: Set<UUID> = []
    private var oldest = 0
    private let capacity: Int

    init(capacity: Int) { self.capacity = capacity }

    func contains(_ id: UUID) -> Bool { members.contains(id) }

    mutating func insert(_ id: UUID) {
        guard members.insert(id).inserted else { return }
        guard order.count == capacity else { return order.append(id) }
        members.remove(order[oldest])
        order[oldest] = id
        oldest = (oldest + 1) % capacity
    }
}
