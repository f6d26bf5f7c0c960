import Cluster

/// Who waits until this hub has read the log up to its head (`ClusterService.awaitHead`).
extension ClusterWorker {
    /// A message of one's own that comes back has everything before it that was in the log when it was written.
    mutating func awaitHead(_ waiters: [@Sendable (Bool) -> Void]) {
        guard !waiters.isEmpty else { return }
        guard writer.isOpen else {
            for done in waiters { done(false) }
            return
        }
        // It says nothing about anybody.
        write(.users([]))
        let sequence = writer.lastSequence
        headWaiters += waiters.map { (sequence, $0) }
    }

    mutating func tellHeadWaiters() {
        guard let first = headWaiters.first, first.sequence <= ownApplied || !writer.isOpen else { return }
        let isWhole = writer.isOpen
        let due = headWaiters.prefix { !isWhole || $0.sequence <= ownApplied }
        headWaiters.removeFirst(due.count)
        for waiter in due { waiter.done(isWhole) }
    }
}
