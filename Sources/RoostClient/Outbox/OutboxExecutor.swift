import Dispatch

/// Runs an outbox on a queue of its own: its storage may block on a disk, which must not hold up the threads that all
/// other tasks share. First come, first served, so payloads keep the order in which one task after another gave them.
final class OutboxExecutor: SerialExecutor {
    private let queue = DispatchQueue(label: "roost.outbox")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }
}
