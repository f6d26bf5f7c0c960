import Cluster

/// Callers that wait until this hub has read the log up to its head (`ClusterService.awaitHead`).
extension ClusterWorker {
    /// When a message of this hub comes back, so has everything that was in the log before it.
    mutating func awaitHead(_ waiters: [@Sendable (Bool) -> Void]) {
        guard !waiters.isEmpty else { return }
        guard writer.isOpen else {
            for done in waiters { done(false) }
            return
        }
        // An empty message.
        writeMessage(.users([]))
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
