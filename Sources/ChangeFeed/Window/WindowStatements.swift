package import Postgres

/// The statements by which one session reads windows (Window.sql).
///
/// Windows differ in where they begin, hundreds of times a second, and seldom in the rest. To plan one costs Postgres ten times what
/// it costs to run, so the session prepares what it reads by for the second time.
package struct WindowStatements {
    /// What a window brings along besides its rows, and what it leaves out.
    package struct Contents: Equatable {
        /// The catalog's version, in SQL (`CatalogReader.compileVersion`).
        var version: String?
        /// What tells whether changes went (OutboxLook in Losses.sql).
        var bringsLook = false
        /// The tables of which it tells whether they were written.
        var members: Set<UInt32> = []
        /// Those of them of which it tells the rows.
        var narrowed: Set<UInt32> = []
        /// The tables whose rows it passes over.
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
        /// Of the prepared statement; nil where the contents were asked for once.
        var name: String?
    }

    /// Up to how many rows a window counts that it passes over: that it is more than a slice of a recovery looks at
    /// (`RecoveryReader.sliceRows`) is all that has to be known of many.
    static let mostPassed = 2001

    /// Up to how many rows of members tables a window tells of; where it tells of so many, there may be more.
    static let mostMemberRows = 257

    /// So many kinds of windows are known at a time: with version and look or without, before and behind a change of what is heard.
    private static let mostEntries = 8

    private let template: WindowTemplate
    /// The one that was used last comes last.
    private var entries: [Entry] = []
    private var prepared = 0

    /// - Parameter form: how rows are read here.
    package init(_ form: OutboxForm) { template = WindowTemplate(form) }

    /// Hands on the rows of what came after a snapshot, as they arrive.
    ///
    /// - Parameters:
    ///   - reader: the session, always the same one.
    ///   - row: returns false to have the rest thrown away; `limit` is counted anew from each row.
    /// - Throws: `PostgresError`, and what `row` throws.
    package mutating func stream(
        _ contents: Contents, after snapshot: Snapshot, from reader: PostgresConnection, within limit: Duration,
        row: (QueryResult) throws -> Bool
    ) throws {
        let start = [String(snapshot.xmax), "{" + snapshot.running.map(String.init).joined(separator: ",") + "}"]
        if let name = try preparedName(of: contents, on: reader) {
            try reader.stream(PreparedCall(name, start.map { .text($0) }), within: limit, row: row)
        } else {
            try reader.stream(text(of: contents), start, within: limit, row: row)
        }
    }

    /// - Returns: nil for contents that were not asked for lately.
    private mutating func preparedName(of contents: Contents, on reader: PostgresConnection) throws -> String? {
        guard let place = entries.lastIndex(where: { $0.contents == contents }) else {
            if entries.count == Self.mostEntries, let name = entries.removeFirst().name {
                try reader.run("deallocate \(name)")
            }
            entries.append(Entry(contents: contents))
            return nil
        }
        var entry = entries.remove(at: place)
        if entry.name == nil {
            prepared += 1
            let name = "window_\(prepared)"
            try reader.prepare(name, text(of: contents))
            entry.name = name
        }
        entries.append(entry)
        return entry.name
    }

    private func text(of contents: Contents) -> String {
        func list(_ oids: some Sequence<UInt32>) -> String { oids.map(String.init).joined(separator: ",") }
        return template.statement([
            "version": contents.version ?? "null::text",
            "outbox": contents.bringsLook ? Self.outbox : "null::json",
            "members": list(contents.members.subtracting(contents.narrowed).sorted()),
            "narrowed": list(contents.members.intersection(contents.narrowed).sorted()),
            "mostrows": String(Self.mostMemberRows), "unheard": list(contents.unheard), "most": String(Self.mostPassed),
        ])
    }

    private static let outbox = "(" + SQLTemplate.withoutComments(LossSQL.outboxLook.text) + ")"
}

/// Window.sql, with places for a window's own parts.
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

    /// - Parameter parts: what Window.sql is filled with, but for the parts that it only has where there are members
    ///   tables, or tables to be passed over.
    func statement(_ parts: [String: String]) -> String {
        var parts = parts
        let hasMembers = parts["members"] != "" || parts["narrowed"] != ""
        parts["touched"] = hasMembers ? members.filled(parts) : "null::json"
        let isWhole = parts["unheard"] == ""
        parts["heard"] = isWhole ? "true" : Self.heard.filled(parts)
        parts["passed"] = isWhole ? "0::oid" : Self.passed.filled(parts)
        return window.filled(parts)
    }
}
