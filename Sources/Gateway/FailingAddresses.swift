/// Addresses that keep failing to authenticate.
///
/// The original answers every refusal two seconds late. Here the first failures of an address are answered at once, and
/// only an address that goes on failing has its next connections held back.
struct FailingAddresses {
    /// Failures within the window that are still answered at once; zero: all of them.
    var allowance: Int
    static let window: Int32 = 60
    /// How long a held connection waits, in milliseconds (the original's CONNECT_ERROR_BACKOFF_MS).
    static let delay: UInt64 = 2000
    private static let capacity = 10_000

    private struct Record {
        var failures: Int
        var since: Int32
    }
    private var records: [String: Record] = [:]

    init(allowance: Int) {
        self.allowance = allowance
    }

    var isEmpty: Bool { records.isEmpty }

    mutating func failed(_ address: String, second: Int32) {
        guard allowance > 0 else { return }
        // A flood from many addresses must not grow the table: it starts over, and the flood is counted again.
        if records.count >= Self.capacity { records.removeAll() }
        var record = records[address] ?? Record(failures: 0, since: second)
        if second - record.since > Self.window { record = Record(failures: 0, since: second) }
        record.failures += 1
        records[address] = record
    }

    func keepsFailing(_ address: String, second: Int32) -> Bool {
        guard allowance > 0, let record = records[address] else { return false }
        return record.failures > allowance && second - record.since <= Self.window
    }

    /// Forgets addresses whose window is over.
    mutating func forget(before second: Int32) {
        if !records.isEmpty { records = records.filter { second - $0.value.since <= Self.window } }
    }
}
