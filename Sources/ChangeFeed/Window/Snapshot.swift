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
        let template = commitTimestamps ? Self.withCommitTimestamps : Self.withoutCommitTimestamps
        return template.before + String(xmax) + template.between + "{" + running.map(String.init).joined(separator: ",")
            + "}" + template.after
    }

    // Cut up once, and without its comments: this is sent hundreds of times a second.
    private static let withCommitTimestamps = WindowTemplate(committed: "pg_xact_commit_timestamp(xid::xid)::text")
    private static let withoutCommitTimestamps = WindowTemplate(committed: "null::text")
}

/// Window.sql, cut where a snapshot's bounds go.
private struct WindowTemplate {
    let before: String
    let between: String
    let after: String

    init(committed: String) {
        let code = SQL.window.split(separator: "\n").filter { !$0.hasPrefix("--") }.joined(separator: "\n")
        let text = code.replacing(":committed", with: committed)
        let parts = text.replacing(":xip", with: ":xmax").split(separator: ":xmax", omittingEmptySubsequences: false)
        precondition(parts.count == 3, "Window.sql names :xmax once and then :xip once")
        (before, between, after) = (String(parts[0]), String(parts[1]), String(parts[2]))
    }
}
