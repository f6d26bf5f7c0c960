package import Hub

/// Row changes on their way from the feed to a loop's sockets.
///
/// A large transaction arrives faster than clients read. While `SlowReaders` asks for time, the remaining changes wait
/// here, and so does the feed, which is notified only when its batch was taken.
package struct ChangeQueue {
    package struct Batch {
        package let events: [FeedEvent]
        /// The recovery, if the events are steps of one.
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
        /// A batch is exhausted; the receiver calls `whenTaken`.
        case end(Batch)
    }

    private var batches: [Batch] = []
    private var position = 0

    package init() {}

    package var isEmpty: Bool { batches.isEmpty }

    /// Whether the next item belongs to a recovery.
    package var isOfRecovery: Bool { batches.first?.recovery != nil }

    package mutating func append(_ batch: Batch) {
        batches.append(batch)
    }

    /// The next item; nil if nothing is left for now.
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
