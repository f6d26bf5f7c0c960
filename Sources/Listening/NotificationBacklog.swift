import Synchronization
package import Workers

/// Tracks the bytes that each event loop has been handed and not processed yet, and which loops lost notifications.
///
/// Notifications are read whether or not loops keep up: Postgres retains for all sessions what one has not read, and
/// refuses every NOTIFY once its queue is full. So a loop that is too far behind is handed nothing more until it has
/// processed its backlog; then it is told of the gap. Callable from any thread.
package final class NotificationBacklog: Sendable {
    private struct Share {
        var bytes = 0
        var hasGap = false
    }

    private let most: Int
    private let shares: Mutex<[Share]>
    /// Readable once a loop with a gap has processed its backlog.
    package let news = EventDescriptor()

    /// - Parameter most: the backlog in bytes at which a loop is handed nothing more.
    package init(loops: Int, most: Int) {
        self.most = most
        shares = Mutex(Array(repeating: Share(), count: loops))
    }

    /// Whether the loop may be handed `bytes`, which then count towards its backlog.
    package func admit(_ bytes: Int, to loop: Int) -> Bool {
        shares.withLock { shares in
            guard !shares[loop].hasGap, shares[loop].bytes < most else {
                shares[loop].hasGap = true
                return false
            }
            shares[loop].bytes += bytes
            return true
        }
    }

    package func noteProcessed(_ bytes: Int, by loop: Int) {
        let isAwaited = shares.withLock { shares in
            shares[loop].bytes -= bytes
            return shares[loop].hasGap && shares[loop].bytes == 0
        }
        if isAwaited { news.signal() }
    }

    /// The loops to tell of a gap now. They receive all later notifications.
    package func takeGaps() -> [Int] {
        news.clear()
        return shares.withLock { shares in
            shares.indices.filter { loop in
                guard shares[loop].hasGap, shares[loop].bytes == 0 else { return false }
                shares[loop].hasGap = false
                return true
            }
        }
    }
}
