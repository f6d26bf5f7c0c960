package import Hub

/// Row changes on their way from the feed to a loop's sockets.
///
/// A large transaction reaches a loop faster than its clients read. While `SlowReaders` asks for time, the rest of the
/// changes waits here, and with it the feed, which is told only when its batch was taken.
package struct ChangeQueue {
    package struct Batch {
        package let events: [FeedEvent]
        /// Whose they are, where they are steps of one recovery.
        package let recovery: RecoveryID?
        package let whenTaken: @Sendable () -> Void

        package init(_ events: [FeedEvent], of recovery: RecoveryID? = nil, whenTaken: @escaping @Sendable () -> Void) {
            self.events = events
            self.recovery = recovery
            self.whenTaken = whenTaken
        }
    }

    package enum Item {
        case event(FeedEvent)
        /// All of a batch was given out; whoever takes this calls `whenTaken`.
        case end(Batch)
    }

    private var batches: [Batch] = []
    private var position = 0

    package init() {}

    package var isEmpty: Bool { batches.isEmpty }

    /// Whether what is to be done next belongs to a recovery.
    package var isOfRecovery: Bool { batches.first?.recovery != nil }

    package mutating func append(_ batch: Batch) {
        batches.append(batch)
    }

    /// What is to be done next; nil if nothing is left for now.
    package mutating func next() -> Item? {
        guard let batch = batches.first else { return nil }
        if position < batch.events.count {
            position += 1
            return .event(batch.events[position - 1])
        }
        batches.removeFirst()
        position = 0
        return .end(batch)
    }
}
