package import Postgres

/// The statements with which one session reads windows (Window.sql).
///
/// Windows start at a different place hundreds of times a second, but seldom differ otherwise. Planning one costs Postgres
/// ten times as much as running it, so the session prepares a statement when it needs it for the second time.
package struct WindowStatements {
    /// The additions to a window's rows, and the rows that it leaves out.
    package struct Contents: Equatable {
        /// The catalog's version, in SQL (`CatalogReader.compileVersion`).
        var version: String?
        /// True to include the check for deleted changes (OutboxLook in Losses.sql).
        var bringsLook = false
        /// The members tables for which the window reports whether they were written.
        var members: Set<UInt32> = []
        /// The members tables for which the window reports the rows.
        var narrowed: Set<UInt32> = []
        /// The tables whose rows the window skips.
        var unheard: [UInt32] = []

        package init(
            version: String? = nil, bringsLook: Bool = false, members: Set<UInt32> = [], narrowed: Set<UInt32> = [],
            unheard: [UInt32] = []
        ) {
            self.version = version
            self.bringsLook = bringsLook
            self.members = members
            self.narrowed = narrowed
            self.unheard = unheard
        }
    }

    private struct Entry {
        let contents: Contents
        /// The prepared statement's name; nil after only one use.
        var name: String?
    }

    /// Limit to which a window counts skipped rows: the only thing to know about many is that they exceed a slice of a
    /// recovery (`RecoveryReader.sliceRows`).
    static let mostPassed = 2001

    /// Limit of members tables' rows that a window reports; at this number, there may be more.
    static let mostMemberRows = 257

    /// Limit of remembered kinds of windows: with and without version and check, before and after a change of the heard
    /// tables.
    private static let mostEntries = 8

    private let template: WindowTemplate
    /// In the order of use, the latest last.
    private var entries: [Entry] = []
    private var prepared = 0

    /// - Parameter form: the form in which rows are read here.
    package init(_ form: OutboxForm) { template = WindowTemplate(form) }

    /// Passes on the rows that follow a snapshot, as they arrive.
    ///
    /// - Parameters:
    ///   - reader: the session, always the same one.
    ///   - row: returns false to discard the remaining rows; `limit` starts over with each row.
    /// - Throws: `PostgresError`, and errors of `row`.
    package mutating func streamWindow(
        _ contents: Contents, after snapshot: Snapshot, from reader: PostgresConnection, within limit: Duration,
        row: (QueryResult) throws -> Bool
    ) throws {
        let start = [String(snapshot.xmax), "{" + snapshot.running.map(String.init).joined(separator: ",") + "}"]
        if let name = try preparedName(of: contents, on: reader) {
            try reader.streamRows(PreparedCall(name, start.map { .text($0) }), within: limit, row: row)
        } else {
            try reader.streamRows(text(of: contents), start, within: limit, row: row)
        }
    }

    /// - Returns: nil for contents that were not used lately.
    private mutating func preparedName(of contents: Contents, on reader: PostgresConnection) throws -> String? {
        guard let place = entries.lastIndex(where: { $0.contents == contents }) else {
            if entries.count == Self.mostEntries, let name = entries.removeFirst().name {
                try reader.runScript("deallocate \(name)")
            }
            entries.append(Entry(contents: contents))
            return nil
        }
        var entry = entries.remove(at: place)
        if entry.name == nil {
            prepared += 1
            let name = "window_\(prepared)"
            try reader.prepareStatement(name, text(of: contents))
            entry.name = name
        }
        entries.append(entry)
        return entry.name
    }

    private func text(of contents: Contents) -> String {
        func list(_ oids: some Sequence<UInt32>) -> String { oids.map(String.init).joined(separator: ",") }
        return template.fillStatement([
            "version": contents.version ?? "null::text",
            "outbox": contents.bringsLook ? Self.outbox : "null::json",
            "members": list(contents.members.subtracting(contents.narrowed).sorted()),
            "narrowed": list(contents.members.intersection(contents.narrowed).sorted()),
            "mostrows": String(Self.mostMemberRows), "unheard": list(contents.unheard), "most": String(Self.mostPassed),
        ])
    }

    private static let outbox = "(" + SQLTemplate.withoutComments(LossSQL.outboxLook.text) + ")"
}

/// Window.sql, with placeholders for a window's own parts.
private struct WindowTemplate {
    private let window: SQLTemplate
    private let members: SQLTemplate
    private static let heard = SQLTemplate(withoutComments: WindowSQL.heardInWindow.text)
    private static let passed = SQLTemplate(withoutComments: WindowSQL.passedInWindow.text)

    init(_ form: OutboxForm) {
        func filled(_ statement: WindowSQL) -> SQLTemplate {
            SQLTemplate(
                withoutComments: statement.text.replacing(":committed", with: form.committed)
                    .replacing(":record", with: form.record).replacing(":old_record", with: form.oldRecord)
                    .replacing(":texts", with: "\(form.text), \(form.oldText)")
                    .replacing(":deletion", with: OutboxForm.deletion))
        }
        window = filled(.window)
        members = filled(.membersInWindow)
    }

    /// - Parameter parts: the parts of Window.sql, without those that it has only if there are members tables, or tables to
    ///   skip.
    func fillStatement(_ parts: [String: String]) -> String {
        var parts = parts
        let hasMembers = parts["members"] != "" || parts["narrowed"] != ""
        parts["touched"] = hasMembers ? members.filled(parts) : "null::json"
        let isWhole = parts["unheard"] == ""
        parts["heard"] = isWhole ? "true" : Self.heard.filled(parts)
        parts["passed"] = isWhole ? "0::oid" : Self.passed.filled(parts)
        return window.filled(parts)
    }
}
