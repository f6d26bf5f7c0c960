import Postgres

/// A `pg_snapshot` as Postgres writes it, `xmin:xmax:xip,xip,…`: the set of finished transactions.
package struct Snapshot: Sendable, Equatable {
    package let text: String
    package let xmax: UInt64
    /// Below `xmax`, but still running; ascending.
    package let running: [UInt64]

    /// - Returns: nil if the text is not a snapshot; the numbers end up in SQL, so nothing else is accepted.
    package init?(_ text: String) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 3, UInt64(parts[0]) != nil, let xmax = UInt64(parts[1]), 1...UInt64(Int64.max) ~= xmax
        else { return nil }
        let ids = parts[2].split(separator: ",")
        let running = ids.compactMap { UInt64($0) }
        guard running.count == ids.count else { return nil }
        self.init(text: text, xmax: xmax, running: running)
    }

    /// - Parameter text: the text form of the other two.
    init(text: String, xmax: UInt64, running: [UInt64]) {
        self.text = text
        self.xmax = xmax
        self.running = running
    }
}

/// The SQL for reading rows of roost.change under a server's and a database's settings.
package struct OutboxForm: Hashable {
    /// True if the server keeps the times of commits (`track_commit_timestamp`).
    let keepsCommitTimes: Bool
    /// True if every text of the database can be sent. In another encoding, or none, a single byte that is not UTF-8 would
    /// fail the statement, and all of its rows with it.
    let isUTF8: Bool

    package init(keepsCommitTimes: Bool, isUTF8: Bool) {
        self.keepsCommitTimes = keepsCommitTimes
        self.isUTF8 = isUTF8
    }

    /// The time when the row's transaction was committed. Null if only the row's `at` is known: for rows read from the WAL
    /// that is the commit's time, and the transaction that stored them is a different one.
    var committed: String {
        keepsCommitTimes ? "case when lsn is null then pg_xact_commit_timestamp(xid::xid)::text end" : "null::text"
    }

    var record: String { isUTF8 ? "record" : "roost.legible(record)" }
    var oldRecord: String { isUTF8 ? "old_record" : "roost.legible(old_record)" }
    var text: String { isUTF8 ? "row_text" : "roost.legible(row_text)" }
    var oldText: String { isUTF8 ? "old_row_text" : "roost.legible(old_row_text)" }

    /// The transaction that deleted a row, in the form that `WriterTransaction` reads.
    static let deletion = "case when op = 'D' then concat_ws(' ', xid, lsn) end"
}

/// The feed's reading snapshots are ordered: each sees everything that the one before saw.
extension Snapshot {
    /// True if a transaction was finished, as `pg_visible_in_snapshot` decides.
    package func sees(_ transaction: UInt64) -> Bool {
        guard transaction < xmax else { return false }
        // Postgres writes them in ascending order.
        guard let first = running.first, transaction >= first else { return true }
        var low = 0
        var high = running.count
        while low < high {
            let middle = (low + high) / 2
            if running[middle] < transaction { low = middle + 1 } else { high = middle }
        }
        return low == running.count || running[low] != transaction
    }

    /// True if the other snapshot sees everything that this one does.
    package func precedes(_ other: Snapshot) -> Bool {
        xmax <= other.xmax && other.running.allSatisfy { !sees($0) }
    }

    /// The snapshot that sees what both see.
    func intersection(_ other: Snapshot) -> Snapshot {
        let xmax = min(xmax, other.xmax)
        let running = Set((running + other.running).filter { $0 < xmax })
        return Snapshot(xmax: xmax, running: running.sorted())
    }

    /// The lowest transaction that is not finished in this snapshot; all lower ones are.
    var xmin: UInt64 { running.first ?? xmax }

    package init(xmax: UInt64, running: [UInt64]) {
        let lowest = running.first ?? xmax
        self.init(
            text: "\(lowest):\(xmax):" + running.map(String.init).joined(separator: ","), xmax: xmax, running: running)
    }
}

extension Snapshot {
    /// Sees every transaction that may have lost a change from the outbox.
    ///
    /// - Parameters: from roost.meta, as text: the highest of these transactions, and the lower ones that were spared.
    /// - Returns: nil if nothing is gone.
    package init?(prunedUpTo highest: String?, sparing spared: String?) {
        guard let highest = highest.flatMap({ UInt64($0) }) else { return nil }
        // No transaction id is higher: if another program wrote such a number, everything may be gone.
        guard highest < UInt64(Int64.max) else {
            self.init(xmax: UInt64(Int64.max), running: [])
            return
        }
        let running = (spared ?? "").split(separator: ",").compactMap { UInt64($0) }
        self.init(xmax: highest + 1, running: running.filter { $0 <= highest }.sorted())
    }
}
