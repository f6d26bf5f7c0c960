import Dispatch
import Foundation

extension Outbox {
    /// Sends until the task that calls it is cancelled, and returns then, when the last send has ended. Without it,
    /// payloads are stored and wait.
    ///
    /// It may be called again; what was being sent is then sent once more. A call while another one runs waits until that
    /// one has ended, so a view may call it in its `task`.
    ///
    /// - Throws: what the storage throws when it cannot be read.
    public func run() async throws {
        while running != nil {
            let (turn, end) = AsyncStream.makeStream(of: Never.self)
            successors.append(end)
            for await _ in turn {}
            if Task.isCancelled { return }
        }
        try load()
        let (rings, bell) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        running = OutboxRun(bell: bell)
        bell.yield()
        // Ends when this task is cancelled.
        for await _ in rings where !Task.isCancelled { startWhatIsReady() }
        for task in running?.end() ?? [] { await task.value }
        running = nil
        for successor in successors { successor.finish() }
        successors = []
    }

    private func startWhatIsReady() {
        let now = time.now()
        for attempt in begin(at: now) {
            running?.began(attempt, Task { await self.perform(attempt) })
        }
        running?.setAlarm(at: core.queue.opensNext(after: now), time)
    }

    private func perform(_ attempt: OutboxQueue.Attempt) async {
        defer { running?.ended(attempt) }
        guard let stored = core.queue[attempt.localID] else { return }
        let item: OutboxItem<Payload>
        do { item = try self.item(stored) } catch {
            let reason = "this version of the app cannot read it: \(error)"
            return change { $0.fail(attempt, .reject(reason), reason: reason, at: time.now(), random: 0) }
        }
        do {
            try await sendInTime(item)
            change { _ = $0.finish(attempt.localID) }
        } catch {
            // Ended by us: run() ends, or the payload has left the outbox.
            if Task.isCancelled { return change { $0.interrupt(attempt) } }
            let isLate = error as? OutboxError == .timedOut(options.sendTimeout)
            let verdict = isLate ? .retry : classify(error, item)
            change { $0.fail(attempt, verdict, reason: "\(error)", at: time.now(), random: time.random()) }
        }
    }

    private func sendInTime(_ item: OutboxItem<Payload>) async throws {
        let (send, time, limit) = (send, time, options.sendTimeout)
        try await withThrowingTaskGroup(of: Bool.self) { group in
            group.addTask {
                try await send(item)
                return true
            }
            let deadline = time.now() + limit
            group.addTask {
                try await time.sleep(deadline)
                return false
            }
            defer { group.cancelAll() }
            guard try await group.next() != true else { return }
            group.cancelAll()
            do {
                // It may have succeeded in this very moment.
                if try await group.next() == true { return }
            } catch {
                // It has ended as it was told to.
            }
            throw OutboxError.timedOut(limit)
        }
    }
}

/// What exists only while an outbox runs: the sends, the wait for the next one, and the bell that ends the wait.
struct OutboxRun {
    /// For the answer to a send that a change has confirmed. It is on its way, mostly; to cancel the request would close
    /// a connection that the next one can use.
    private static let answerTime = Duration.seconds(1)

    let bell: AsyncStream<Void>.Continuation
    private var sends: [OutboxQueue.Attempt: Task<Void, Never>] = [:]
    /// Those that cancel a send that is not waited for any more.
    private var leashes: [OutboxQueue.Attempt: Task<Void, Never>] = [:]
    private var alarm: (at: ContinuousClock.Instant, task: Task<Void, Never>)?

    init(bell: AsyncStream<Void>.Continuation) { self.bell = bell }

    func wake() { bell.yield() }

    func cancel(_ localID: UUID) {
        for (attempt, task) in sends where attempt.localID == localID { task.cancel() }
    }

    mutating func began(_ attempt: OutboxQueue.Attempt, _ task: Task<Void, Never>) { sends[attempt] = task }

    mutating func ended(_ attempt: OutboxQueue.Attempt) {
        sends[attempt] = nil
        leashes.removeValue(forKey: attempt)?.cancel()
    }

    /// Nobody waits for the send of this payload any more; it may end by itself for a moment.
    mutating func letGo(_ localID: UUID, _ time: OutboxTime) {
        let end = time.now() + Self.answerTime
        for (attempt, send) in sends where attempt.localID == localID {
            leashes[attempt] = Task {
                // Cancelled: the send has ended.
                do { try await time.sleep(end) } catch { return }
                send.cancel()
            }
        }
    }

    /// Rings the bell at a time, in place of the time before; nil: not at all.
    mutating func setAlarm(at instant: ContinuousClock.Instant?, _ time: OutboxTime) {
        guard alarm?.at != instant else { return }
        alarm?.task.cancel()
        alarm = instant.map { [bell] instant in
            let task = Task {
                // Cancelled: there is another alarm, or none is needed.
                do { try await time.sleep(instant) } catch { return }
                bell.yield()
            }
            return (instant, task)
        }
    }

    /// All that may still be running, cancelled.
    mutating func end() -> [Task<Void, Never>] {
        bell.finish()
        let rest = Array(sends.values) + Array(leashes.values) + (alarm.map { [$0.task] } ?? [])
        for task in rest { task.cancel() }
        return rest
    }
}

/// Time and chance, passed in so that tests decide them.
package struct OutboxTime: Sendable {
    package let now: @Sendable () -> ContinuousClock.Instant
    /// Returns early, with an error, only when its task is cancelled.
    package let sleep: @Sendable (_ until: ContinuousClock.Instant) async throws -> Void
    /// In 0..<1.
    package let random: @Sendable () -> Double

    package init(
        now: @escaping @Sendable () -> ContinuousClock.Instant,
        sleep: @escaping @Sendable (ContinuousClock.Instant) async throws -> Void,
        random: @escaping @Sendable () -> Double
    ) {
        self.now = now
        self.sleep = sleep
        self.random = random
    }

    /// The continuous clock goes on while a phone sleeps, so a wait that ended meanwhile is over when it wakes.
    package static let real = OutboxTime(
        now: { .now }, sleep: { try await Task.sleep(until: $0, clock: .continuous) },
        random: { .random(in: 0..<1) })
}

/// Runs an outbox on a queue of its own: its storage may block on a disk, which must not hold up the threads that all
/// other tasks share. First come, first served, so payloads keep the order in which one task after another gave them.
final class OutboxExecutor: SerialExecutor {
    private let queue = DispatchQueue(label: "roost.outbox")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }
}
