import Foundation

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
