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
    ///
    /// - Parameters:
    ///   - isVersionDue: whether it brings the catalog's version along.
    ///   - members: the tables of which it is to tell whether they were written.
    func window(commitTimestamps: Bool, isVersionDue: Bool = false, members: Set<UInt32> = []) -> String {
        let template = commitTimestamps ? Self.withCommitTimestamps : Self.withoutCommitTimestamps
        return template.statement(
            xmax: String(xmax), xip: "{" + running.map(String.init).joined(separator: ",") + "}",
            version: isVersionDue ? Self.version : "null::text",
            members: members.isEmpty ? nil : members.sorted().map(String.init).joined(separator: ","))
    }

    private static let version = "(" + WindowTemplate.code(of: SQL.catalogVersion) + ")"

    // Cut up once, and without its comments: this is sent hundreds of times a second.
    private static let withCommitTimestamps = WindowTemplate(committed: "pg_xact_commit_timestamp(xid::xid)::text")
    private static let withoutCommitTimestamps = WindowTemplate(committed: "null::text")
}

/// Window.sql and MembersInWindow.sql, cut where a window's own parts go.
private struct WindowTemplate {
    private let window: [Substring]
    private static let members = cut(code(of: SQL.membersInWindow))

    init(committed: String) {
        window = Self.cut(Self.code(of: SQL.window).replacing(":committed", with: committed))
    }

    func statement(xmax: String, xip: String, version: String, members: String?) -> String {
        var parts = ["xmax": xmax, "xip": xip, "version": version, "touched": "null::json"]
        if let members {
            parts["members"] = members
            parts["touched"] = Self.fill(Self.members, parts)
        }
        return Self.fill(window, parts)
    }

    static func code(of script: String) -> String {
        script.split(separator: "\n").filter { !$0.hasPrefix("--") }.joined(separator: "\n")
    }

    /// Text and names in turns: a name stands between at signs.
    private static func cut(_ text: String) -> [Substring] {
        text[...].split(separator: "@", omittingEmptySubsequences: false)
    }

    private static func fill(_ pieces: [Substring], _ parts: [String: String]) -> String {
        var out = ""
        for (index, piece) in pieces.enumerated() {
            if index % 2 == 0 { out += piece } else { out += parts[String(piece), default: ""] }
        }
        return out
    }
}
