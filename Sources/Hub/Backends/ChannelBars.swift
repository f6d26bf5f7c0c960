import Synchronization
package import Wire

/// Who was taken out of which channel by a backend, and may not join it again for a while.
///
/// One for all loops; safe from any thread. While nobody is barred from anything, a join costs one atomic read of it. Times are in
/// monotonic milliseconds. It is forgotten with the process.
package final class ChannelBars: Sendable {
    private struct Bar: Hashable {
        let user: Name
        let key: ChannelKey
    }

    private let until = Mutex<[Bar: Int64]>([:])
    private let count = Atomic<Int>(0)

    /// At once: a backend that bars everybody from everything is to find out, not to fill the memory.
    package static let most = 100_000
    /// How long one may last.
    package static let longestSeconds = 86_400

    package init() {}

    /// - Returns: false where there is no room for more.
    package func bar(_ user: Name, from key: ChannelKey, seconds: Int, at now: Int64) -> Bool {
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

    /// For how many seconds yet; nil where the user may join.
    func seconds(_ user: Name, _ key: ChannelKey, at now: Int64) -> Int? {
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
