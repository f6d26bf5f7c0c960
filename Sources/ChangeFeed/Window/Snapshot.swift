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

    /// The statement that reads what came after this snapshot.
    ///
    /// - Parameters:
    ///   - form: how rows are read here.
    ///   - isVersionDue: whether it brings along the catalog's version.
    ///   - isLookDue: whether it brings along what tells whether changes went.
    ///   - members: the tables of which it is to tell whether they were written.
    ///   - narrowed: those of them of which it is to tell the rows.
    ///   - unheard: the tables whose rows it passes over, by oid.
    func window(
        _ form: OutboxForm, isVersionDue: Bool = false, isLookDue: Bool = false, members: Set<UInt32> = [],
        narrowed: Set<UInt32> = [], unheard: [UInt32] = []
    ) -> String {
        let template = Self.templates[form] ?? WindowTemplate(form)
        return template.statement([
            "xmax": String(xmax), "xip": "{" + running.map(String.init).joined(separator: ",") + "}",
            "version": isVersionDue ? Self.version : "null::text", "outbox": isLookDue ? Self.outbox : "null::json",
            "members": members.subtracting(narrowed).sorted().map(String.init).joined(separator: ","),
            "narrowed": members.intersection(narrowed).sorted().map(String.init).joined(separator: ","),
            "mostrows": String(Self.mostMemberRows),
            "unheard": unheard.map(String.init).joined(separator: ","), "most": String(Self.mostPassed),
        ])
    }

    /// Up to how many rows a window counts that it passes over: that it is more than a slice of a recovery looks at
    /// (`RecoveryReader.sliceRows`) is all that has to be known of many.
    static let mostPassed = 2001

    /// Up to how many rows of members tables a window tells of; where it tells of so many, there may be more.
    static let mostMemberRows = 257

    private static let version = "(" + SQLTemplate.withoutComments(CatalogSQL.catalogVersion.text) + ")"

    private static let outbox = "(" + SQLTemplate.withoutComments(LossSQL.outboxLook.text) + ")"

    // Cut up once, and without its comments: this is sent hundreds of times a second.
    private static let templates = Dictionary(
        uniqueKeysWithValues: [true, false].flatMap { keepsTimes in
            [true, false].map { OutboxForm(keepsCommitTimes: keepsTimes, isUTF8: $0) }
        }.map { ($0, WindowTemplate($0)) })
}

/// How SQL reads what a server and a database keep in their own way of the rows of roost.change.
struct OutboxForm: Hashable {
    /// Whether the server keeps the times of commits (`track_commit_timestamp`).
    let keepsCommitTimes: Bool
    /// Whether every text of the database can be sent. In another encoding, or none, one byte that is no UTF-8 would fail the
    /// statement, and all of its rows with it.
    let isUTF8: Bool

    /// When the row's transaction was committed. Null where the row's `at` is all that is known: of what was read from the WAL
    /// it is the commit's time, and the transaction that stored it is another.
    var committed: String {
        keepsCommitTimes ? "case when lsn is null then pg_xact_commit_timestamp(xid::xid)::text end" : "null::text"
    }

    var record: String { isUTF8 ? "record" : "roost.legible(record)" }
    var oldRecord: String { isUTF8 ? "old_record" : "roost.legible(old_record)" }
    var text: String { isUTF8 ? "row_text" : "roost.legible(row_text)" }
    var oldText: String { isUTF8 ? "old_row_text" : "roost.legible(old_row_text)" }
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
                    .replacing(":texts", with: "\(form.text), \(form.oldText)"))
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
