import Postgres

/// A `pg_snapshot` as Postgres writes it, `xmin:xmax:xip,xip,…`: which transactions were finished.
package struct Snapshot: Sendable, Equatable {
    package let text: String
    package let xmax: UInt64
    /// Below `xmax`, but still running; ascending.
    package let running: [UInt64]

    /// - Returns: nil where the text is not a snapshot; the numbers end up in SQL, so nothing else passes.
    package init?(_ text: String) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 3, UInt64(parts[0]) != nil, let xmax = UInt64(parts[1]), 1...UInt64(Int64.max) ~= xmax
        else { return nil }
        let ids = parts[2].split(separator: ",")
        let running = ids.compactMap { UInt64($0) }
        guard running.count == ids.count else { return nil }
        self.init(text: text, xmax: xmax, running: running)
    }

    /// - Parameter text: what the other two say.
    init(text: String, xmax: UInt64, running: [UInt64]) {
        self.text = text
        self.xmax = xmax
        self.running = running
    }
}

/// How SQL reads what a server and a database keep in their own way of the rows of roost.change.
package struct OutboxForm: Hashable {
    /// Whether the server keeps the times of commits (`track_commit_timestamp`).
    let keepsCommitTimes: Bool
    /// Whether every text of the database can be sent. In another encoding, or none, one byte that is no UTF-8 would fail the
    /// statement, and all of its rows with it.
    let isUTF8: Bool

    package init(keepsCommitTimes: Bool, isUTF8: Bool) {
        self.keepsCommitTimes = keepsCommitTimes
        self.isUTF8 = isUTF8
    }

    /// When the row's transaction was committed. Null where the row's `at` is all that is known: of what was read from the WAL
    /// it is the commit's time, and the transaction that stored it is another.
    var committed: String {
        keepsCommitTimes ? "case when lsn is null then pg_xact_commit_timestamp(xid::xid)::text end" : "null::text"
    }

    var record: String { isUTF8 ? "record" : "roost.legible(record)" }
    var oldRecord: String { isUTF8 ? "old_record" : "roost.legible(old_record)" }
    var text: String { isUTF8 ? "row_text" : "roost.legible(row_text)" }
    var oldText: String { isUTF8 ? "old_row_text" : "roost.legible(old_row_text)" }

    /// What deleted a row, as `WriterTransaction` reads it.
    static let deletion = "case when op = 'D' then concat_ws(' ', xid, lsn) end"
}

/// Snapshots that the feed reads by follow each other: each sees all that the one before saw.
extension Snapshot {
    /// Whether a transaction was finished, as `pg_visible_in_snapshot` tells it.
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

    /// Whether the other one sees all that this one does.
    package func precedes(_ other: Snapshot) -> Bool {
        xmax <= other.xmax && other.running.allSatisfy { !sees($0) }
    }

    /// Sees what both see.
    func intersection(_ other: Snapshot) -> Snapshot {
        let xmax = min(xmax, other.xmax)
        let running = Set((running + other.running).filter { $0 < xmax })
        return Snapshot(xmax: xmax, running: running.sorted())
    }

    /// The lowest transaction that is not finished here; all below are.
    var xmin: UInt64 { running.first ?? xmax }

    package init(xmax: UInt64, running: [UInt64]) {
        let lowest = running.first ?? xmax
        self.init(
            text: "\(lowest):\(xmax):" + running.map(String.init).joined(separator: ","), xmax: xmax, running: running)
    }
}

extension Snapshot {
    /// Sees every transaction of which a change may be gone from the outbox.
    ///
    /// - Parameters: as roost.meta has them, in text: the highest of these transactions, and those below it that were spared.
    /// - Returns: nil where nothing is gone.
    package init?(prunedUpTo highest: String?, sparing spared: String?) {
        guard let highest = highest.flatMap({ UInt64($0) }) else { return nil }
        // No transaction is beyond: of a number that somebody else has written all may be gone.
        guard highest < UInt64(Int64.max) else {
            self.init(xmax: UInt64(Int64.max), running: [])
            return
        }
        let running = (spared ?? "").split(separator: ",").compactMap { UInt64($0) }
        self.init(xmax: highest + 1, running: running.filter { $0 <= highest }.sorted())
    }
}
