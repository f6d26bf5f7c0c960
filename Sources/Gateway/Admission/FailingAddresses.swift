import CWebSockets
import Synchronization
package import Wire

/// Addresses that keep failing to authenticate, in one count for all loops, because the kernel spreads an address's
/// connections over them.
///
/// The original delays every refusal by two seconds. Here the first failures of an address are answered at once, and
/// only an address that keeps failing has its next connections held back. Safe from any thread.
package final class FailingAddresses: Sendable {
    static let window: Int64 = 60
    /// Milliseconds that a connection is held back (the original's CONNECT_ERROR_BACKOFF_MS).
    static let delay: UInt64 = 2000
    private static let capacity = 10_000

    private struct Record {
        var failures: Int
        /// Seconds on a monotonic clock.
        var since: Int64
    }

    /// Failures within the window that are still answered at once; zero for all of them.
    private let allowance: Atomic<Int>
    private let records = Mutex<[Name: Record]>([:])
    /// Whether there are records; read without the lock when connections are accepted.
    private let hasRecords = Atomic<Bool>(false)

    package init(allowance: Int) {
        self.allowance = Atomic(allowance)
    }

    /// Replaces the allowance.
    func adopt(allowance: Int) { self.allowance.store(allowance, ordering: .relaxed) }

    var isEmpty: Bool { !hasRecords.load(ordering: .relaxed) }

    package func failed(_ address: Name, at now: Int64 = FailingAddresses.now) {
        guard allowance.load(ordering: .relaxed) > 0 else { return }
        records.withLock { records in
            // A flood from many addresses must not grow the table, so it starts over, and the flood is counted again.
            if records.count >= Self.capacity { records.removeAll() }
            var record = records[address] ?? Record(failures: 0, since: now)
            if now - record.since > Self.window { record = Record(failures: 0, since: now) }
            record.failures += 1
            records[address] = record
            hasRecords.store(true, ordering: .relaxed)
        }
    }

    package func keepsFailing(_ address: Name, at now: Int64 = FailingAddresses.now) -> Bool {
        let allowance = allowance.load(ordering: .relaxed)
        guard allowance > 0, !isEmpty else { return false }
        return records.withLock { records in
            guard let record = records[address] else { return false }
            return record.failures >= allowance && now - record.since <= Self.window
        }
    }

    /// Forgets addresses whose window is over.
    func forget(at now: Int64 = FailingAddresses.now) {
        guard !isEmpty else { return }
        records.withLock { records in
            records = records.filter { now - $0.value.since <= Self.window }
            // Under the lock, so that a concurrent failure is not overlooked.
            if records.isEmpty { hasRecords.store(false, ordering: .relaxed) }
        }
    }

    /// Seconds on a monotonic clock that all loops share.
    package static var now: Int64 { Int64(uv_hrtime() / 1_000_000_000) }
}
