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

    /// The lowest transaction that is not finished here; all below are.
    var xmin: UInt64 { running.first ?? xmax }

    package init(xmax: UInt64, running: [UInt64]) {
        let lowest = running.first ?? xmax
        self.init(
            text: "\(lowest):\(xmax):" + running.map(String.init).joined(separator: ","), xmax: xmax, running: running)
    }
}
