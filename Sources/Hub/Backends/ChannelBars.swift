import Synchronization
package import Wire

/// Users that a backend removed from a channel and that may not rejoin for a while.
///
/// Shared by all loops; safe from any thread. While no user is barred, the check costs a join one atomic read. Times
/// are in monotonic milliseconds. Bars do not survive the process.
package final class ChannelBars: Sendable {
    private struct Bar: Hashable {
        let user: Name
        let key: ChannelKey
    }

    private let until = Mutex<[Bar: Int64]>([:])
    private let count = Atomic<Int>(0)

    /// The maximum number of bars: a backend that bars everyone from everything should get an error, not fill the
    /// memory.
    package static let most = 100_000
    /// The longest duration of a bar.
    package static let longestSeconds = 86_400

    package init() {}

    /// - Returns: false if there is no room for another bar.
    package func barUser(_ user: Name, from key: ChannelKey, seconds: Int, at now: Int64) -> Bool {
        until.withLock { until in
            let bar = Bar(user: user, key: key)
            if until[bar] == nil, until.count >= Self.most {
                until = until.filter { $0.value > now }
                guard until.count < Self.most else { return false }
            }
            until[bar] = now + Int64(min(max(0, seconds), Self.longestSeconds)) * 1000
            count.store(until.count, ordering: .releasing)
            return true
        }
    }

    /// Returns the remaining seconds of a bar; nil if the user may join.
    func remainingSeconds(_ user: Name, _ key: ChannelKey, at now: Int64) -> Int? {
        guard count.load(ordering: .acquiring) > 0 else { return nil }
        return until.withLock { until in
            let bar = Bar(user: user, key: key)
            guard let end = until[bar] else { return nil }
            guard end > now else {
                until[bar] = nil
                count.store(until.count, ordering: .releasing)
                return nil
            }
            return Int((end - now + 999) / 1000)
        }
    }
}
