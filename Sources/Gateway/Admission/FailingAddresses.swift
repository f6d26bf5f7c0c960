import CWebSockets
import Synchronization
package import Wire

/// Addresses that keep failing to authenticate: one count for all loops, because the kernel spreads an address'
/// connections over them.
///
/// The original answers every refusal two seconds late. Here the first failures of an address are answered at once, and
/// only an address that goes on failing has its next connections held back. Safe from any thread.
package final class FailingAddresses: Sendable {
    static let window: Int64 = 60
    /// How long a held connection waits, in milliseconds (the original's CONNECT_ERROR_BACKOFF_MS).
    static let delay: UInt64 = 2000
    private static let capacity = 10_000

    private struct Record {
        var failures: Int
        /// Seconds of a clock that never goes back.
        var since: Int64
    }

    /// Failures within the window that are still answered at once; zero: all of them.
    private let allowance: Atomic<Int>
    private let records = Mutex<[Name: Record]>([:])
    /// Whether there are records, for those who accept connections and are not to wait for the lock.
    private let hasRecords = Atomic<Bool>(false)

    package init(allowance: Int) {
        self.allowance = Atomic(allowance)
    }

    /// Another allowance from here on.
    func adopt(allowance: Int) { self.allowance.store(allowance, ordering: .relaxed) }

    var isEmpty: Bool { !hasRecords.load(ordering: .relaxed) }

    package func failed(_ address: Name, at now: Int64 = FailingAddresses.now) {
        guard allowance.load(ordering: .relaxed) > 0 else { return }
        records.withLock { records in
            // A flood from many addresses must not grow the table: it starts over, and the flood is counted again.
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
            // Under the lock, so that a failure that is noted now is not overlooked.
            if records.isEmpty { hasRecords.store(false, ordering: .relaxed) }
        }
    }

    /// Seconds of a clock that never goes back and is the same for all loops.
    package static var now: Int64 { Int64(uv_hrtime() / 1_000_000_000) }
}
