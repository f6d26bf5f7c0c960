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
        let (signals, signal) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        running = OutboxRun(signal: signal)
        signal.yield()
        // Ends when this task is cancelled.
        for await _ in signals where !Task.isCancelled { startWhatIsReady() }
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
        running?.setTimer(at: core.queue.opensNext(after: now), time)
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
            // This side ended it: run() ends, or the payload has left the outbox.
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
                // It may have succeeded at this very moment.
                if try await group.next() == true { return }
            } catch {
                // It has ended as it was told to.
            }
            throw OutboxError.timedOut(limit)
        }
    }
}

/// What exists only while an outbox runs: the sends, and the wait for the next one with the signal that ends it.
struct OutboxRun {
    /// How long a send that a change has confirmed may go on. Its answer is on its way, mostly, and to cancel the request
    /// would close a connection that the next one can use.
    private static let answerTime = Duration.seconds(1)

    private let signal: AsyncStream<Void>.Continuation
    private var sends: [OutboxQueue.Attempt: Task<Void, Never>] = [:]
    /// Tasks that cancel a send for which nobody waits any more.
    private var cancellations: [OutboxQueue.Attempt: Task<Void, Never>] = [:]
    private var timer: (at: ContinuousClock.Instant, task: Task<Void, Never>)?

    init(signal: AsyncStream<Void>.Continuation) { self.signal = signal }

    /// Has the loop of `run()` look for what is to be sent.
    func wake() { signal.yield() }

    /// Cancels the sends of this payload.
    func cancel(_ localID: UUID) {
        for (attempt, task) in sends where attempt.localID == localID { task.cancel() }
    }

    mutating func began(_ attempt: OutboxQueue.Attempt, _ task: Task<Void, Never>) { sends[attempt] = task }

    mutating func ended(_ attempt: OutboxQueue.Attempt) {
        sends[attempt] = nil
        cancellations.removeValue(forKey: attempt)?.cancel()
    }

    /// Cancels the sends of this payload, for which nobody waits any more, unless they end by themselves in a moment.
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

    /// Wakes the loop at a time, in place of the one that was set before; nil sets none.
    mutating func setTimer(at instant: ContinuousClock.Instant?, _ time: OutboxTime) {
        guard timer?.at != instant else { return }
        timer?.task.cancel()
        timer = instant.map { [signal] instant in
            let task = Task {
                // Cancelled: there is another timer, or none is needed.
                do { try await time.sleep(instant) } catch { return }
                signal.yield()
            }
            return (instant, task)
        }
    }

    /// Cancels all that runs, and returns the tasks, which may take a moment to end.
    mutating func end() -> [Task<Void, Never>] {
        signal.finish()
        let rest = Array(sends.values) + Array(cancellations.values) + (timer.map { [$0.task] } ?? [])
        for task in rest { task.cancel() }
        return rest
    }
}

/// The time and the randomness of an outbox, passed in so that tests decide them.
package struct OutboxTime: Sendable {
    package let now: @Sendable () -> ContinuousClock.Instant
    /// Returns at a moment. Returns earlier, with an error, only when its task is cancelled.
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

    /// The time and randomness of the system. The continuous clock goes on while a phone sleeps, so a wait that ended
    /// meanwhile is over when the phone wakes.
    package static let real = OutboxTime(
        now: { .now }, sleep: { try await Task.sleep(until: $0, clock: .continuous) },
        random: { .random(in: 0..<1) })
}

/// Runs an outbox on a queue of its own: its storage may block on a disk, which must not hold up the threads that all
/// other tasks share. Calls run in the order in which they were made, so payloads keep the order in which one task after
/// another gave them.
final class OutboxExecutor: SerialExecutor {
    private let queue = DispatchQueue(label: "roost.outbox")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }
}
