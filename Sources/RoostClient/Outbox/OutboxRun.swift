import Dispatch
import Foundation

extension Outbox {
    /// Sends until the calling task is cancelled, and then returns when the last send has ended. While it is not
    /// running, payloads are stored and wait.
    ///
    /// It may be called again; interrupted payloads are then sent once more. A call during another one waits for its
    /// end, so a view may call it in its `task`.
    ///
    /// - Throws: errors of the storage if it cannot be loaded.
    public func run() async throws {
        while running != nil {
            let (turn, end) = AsyncStream.makeStream(of: Never.self)
            successors.append(end)
            for await _ in turn {}
            if Task.isCancelled { return }
        }
        try loadStorage()
        let (signals, signal) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        running = OutboxRun(signal: signal)
        signal.yield()
        // Ends when this task is cancelled.
        for await _ in signals where !Task.isCancelled { startWhatIsReady() }
        for task in running?.endAll() ?? [] { await task.value }
        running = nil
        for successor in successors { successor.finish() }
        successors = []
    }

    private func startWhatIsReady() {
        let now = time.now()
        for attempt in startAttempts(at: now) {
            running?.sendStarted(attempt, Task { await self.performAttempt(attempt) })
        }
        running?.setTimer(at: core.queue.opensNext(after: now), time)
    }

    private func performAttempt(_ attempt: OutboxQueue.Attempt) async {
        defer { running?.sendEnded(attempt) }
        guard let stored = core.queue[attempt.localID] else { return }
        let item: OutboxItem<Payload>
        do { item = try self.makeItem(stored) } catch {
            let reason = "this version of the app cannot read it: \(error)"
            return changeCore { $0.failAttempt(attempt, .reject(reason), reason: reason, at: time.now(), random: 0) }
        }
        do {
            try await sendInTime(item)
            changeCore { _ = $0.finishPayload(attempt.localID) }
        } catch {
            // Aborted on this side: run() ends, or the payload has left the outbox.
            if Task.isCancelled { return changeCore { $0.interruptAttempt(attempt) } }
            let isLate = error as? OutboxError == .timedOut(options.sendTimeout)
            let verdict = isLate ? .retry : classify(error, item)
            changeCore { $0.failAttempt(attempt, verdict, reason: "\(error)", at: time.now(), random: time.random()) }
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
                // It may have succeeded at this very moment.
                if try await group.next() == true { return }
            } catch {
                // It ended because of the cancellation.
            }
            throw OutboxError.timedOut(limit)
        }
    }
}

/// The state that exists only while an outbox runs: the sends, and the timer for the next one with its signal.
struct OutboxRun {
    /// The time that a send may continue after a change has confirmed it. Its response is usually on its way, and cancelling
    /// the request would close a connection that the next one can use.
    private static let answerTime = Duration.seconds(1)

    private let signal: AsyncStream<Void>.Continuation
    private var sends: [OutboxQueue.Attempt: Task<Void, Never>] = [:]
    /// Tasks that cancel a send whose result is not needed any more.
    private var cancellations: [OutboxQueue.Attempt: Task<Void, Never>] = [:]
    private var timer: (at: ContinuousClock.Instant, task: Task<Void, Never>)?

    init(signal: AsyncStream<Void>.Continuation) { self.signal = signal }

    /// Makes the loop of `run()` look for payloads to send.
    func wakeLoop() { signal.yield() }

    /// Cancels the sends of this payload.
    func cancelSends(_ localID: UUID) {
        for (attempt, task) in sends where attempt.localID == localID { task.cancel() }
    }

    mutating func sendStarted(_ attempt: OutboxQueue.Attempt, _ task: Task<Void, Never>) { sends[attempt] = task }

    mutating func sendEnded(_ attempt: OutboxQueue.Attempt) {
        sends[attempt] = nil
        cancellations.removeValue(forKey: attempt)?.cancel()
    }

    /// Cancels the sends of this payload, whose results are not needed any more, unless they end by themselves in a
    /// moment.
    mutating func cancelSoon(_ localID: UUID, _ time: OutboxTime) {
        let end = time.now() + Self.answerTime
        for (attempt, send) in sends where attempt.localID == localID {
            cancellations[attempt] = Task {
                // Cancelled: the send has ended.
                do { try await time.sleep(end) } catch { return }
                send.cancel()
            }
        }
    }

    /// Wakes the loop at this time, replacing the previous timer; nil sets none.
    mutating func setTimer(at instant: ContinuousClock.Instant?, _ time: OutboxTime) {
        guard timer?.at != instant else { return }
        timer?.task.cancel()
        timer = instant.map { [signal] instant in
            let task = Task {
                // Cancelled: another timer replaces it, or none is needed.
                do { try await time.sleep(instant) } catch { return }
                signal.yield()
            }
            return (instant, task)
        }
    }

    /// Cancels everything that is running, and returns the tasks, which may take a moment to end.
    mutating func endAll() -> [Task<Void, Never>] {
        signal.finish()
        let rest = Array(sends.values) + Array(cancellations.values) + (timer.map { [$0.task] } ?? [])
        for task in rest { task.cancel() }
        return rest
    }
}

/// The time and the randomness of an outbox, passed in so that tests control them.
package struct OutboxTime: Sendable {
    package let now: @Sendable () -> ContinuousClock.Instant
    /// Returns at a given time. Returns earlier, with an error, only if its task is cancelled.
    package let sleep: @Sendable (_ until: ContinuousClock.Instant) async throws -> Void
    /// A random number in 0..<1.
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

    /// The system's time and randomness. The continuous clock runs while a phone sleeps, so a pause that ended in the
    /// meantime is over when the phone wakes.
    package static let real = OutboxTime(
        now: { .now }, sleep: { try await Task.sleep(until: $0, clock: .continuous) },
        random: { .random(in: 0..<1) })
}

/// Runs an outbox on a queue of its own: its storage may block on a disk, which must not hold up the threads that all
/// other tasks share. Calls run in the order in which they were made, so payloads keep the order in which consecutive
/// tasks enqueued them.
final class OutboxExecutor: SerialExecutor {
    private let queue = DispatchQueue(label: "roost.outbox")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }
}
