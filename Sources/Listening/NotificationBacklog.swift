import Synchronization
package import Workers

/// How much loops have not taken yet of what they were handed, and which of them lost something for it.
///
/// Notifications are read whether loops keep up or not: Postgres keeps for all sessions what one has not read, and refuses
/// every NOTIFY once its queue is full. So a loop that is too far behind is handed nothing more until it has taken what it
/// has, and then that there is a gap. From any thread.
package final class NotificationBacklog: Sendable {
    private struct Share {
        var bytes = 0
        var hasGap = false
    }

    private let most: Int
    private let shares: Mutex<[Share]>
    /// Readable when a loop with a gap has taken all that it had.
    package let news = EventDescriptor()

    /// - Parameter most: bytes beyond which a loop is handed nothing more.
    package init(loops: Int, most: Int) {
        self.most = most
        shares = Mutex(Array(repeating: Share(), count: loops))
    }

    /// Whether the loop is to be handed so many bytes, which then count as handed over.
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

    package func taken(_ bytes: Int, by loop: Int) {
        let isAwaited = shares.withLock { shares in
            shares[loop].bytes -= bytes
            return shares[loop].hasGap && shares[loop].bytes == 0
        }
        if isAwaited { news.signal() }
    }

    /// The loops that are to be told of a gap now. They are handed all that comes from here on.
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
