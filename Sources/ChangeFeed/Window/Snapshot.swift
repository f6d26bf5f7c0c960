/// A `pg_snapshot` as Postgres writes it, `xmin:xmax:xip,xip,…`: which transactions were finished.
package struct Snapshot: Sendable, Equatable {
    package let text: String
    package let xmax: UInt64
    /// Below `xmax`, but still running.
    package let running: [UInt64]

    /// - Returns: nil where the text is not a snapshot; the numbers end up in SQL, so nothing else passes.
    package init?(_ text: String) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 3, UInt64(parts[0]) != nil, let xmax = UInt64(parts[1]) else { return nil }
        let ids = parts[2].split(separator: ",")
        let running = ids.compactMap { UInt64($0) }
        guard running.count == ids.count else { return nil }
        self.text = text
        self.xmax = xmax
        self.running = running
    }

    /// The statement that reads what came after this snapshot.
    func window(commitTimestamps: Bool) -> String {
        let committed = commitTimestamps ? "pg_xact_commit_timestamp(xid::xid)::text" : "null::text"
        return SQL.window
            .replacing(":xmax", with: String(xmax))
            .replacing(":xip", with: "{" + running.map(String.init).joined(separator: ",") + "}")
            .replacing(":committed", with: committed)
    }
}
