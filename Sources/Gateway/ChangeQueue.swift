import Hub

/// Row changes on their way from the feed to a loop's sockets.
///
/// A large transaction reaches a loop faster than its clients read. While a socket lags behind, the rest of the changes
/// waits here, and with it the feed, which is told only when its batch was taken. A socket is given its chance, not a
/// veto: one that has not caught up within `longestHold` is written off, and goes on towards its cap alone.
struct ChangeQueue {
    typealias Batch = (events: [FeedEvent], whenTaken: @Sendable () -> Void)

    /// Milliseconds.
    static let longestHold: Int64 = 1000

    private var batches: [Batch] = []
    private var position = 0
    private var heldUntil: Int64?

    var isEmpty: Bool { batches.isEmpty }

    mutating func append(_ batch: Batch) {
        batches.append(batch)
    }

    enum Step {
        case deliver(FeedEvent)
        /// Nothing left for now.
        case rest
        /// Lagging sockets are given time; look again in a few milliseconds.
        case hold
        /// Their time is over: write them off, then go on.
        case writeOff
    }

    /// The next thing to do. `laggards` are the sockets that lag behind and were not written off.
    mutating func step(laggards: Int, now: Int64) -> Step {
        guard let batch = batches.first else { return .rest }
        if laggards > 0 {
            let deadline = heldUntil ?? now + Self.longestHold
            heldUntil = deadline
            if now < deadline { return .hold }
            heldUntil = nil
            return .writeOff
        }
        heldUntil = nil
        guard position < batch.events.count else {
            batches.removeFirst()
            position = 0
            batch.whenTaken()
            return step(laggards: laggards, now: now)
        }
        position += 1
        return .deliver(batch.events[position - 1])
    }
}
