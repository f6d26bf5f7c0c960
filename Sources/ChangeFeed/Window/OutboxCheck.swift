import Postgres
import Wire

/// What tells whether anything went from the outbox that was not read (Migration012Losses.sql), and when it was looked at.
struct OutboxCheck {
    /// As OutboxLook.sql makes it. While it is the same, nothing went.
    let text: [UInt8]
    /// What was read by then.
    var place: Snapshot
    /// The table's; another one when it was emptied or written anew.
    let file: String
    /// A transaction of which a change was certainly there; nil where none is known.
    var witness: UInt64?
    /// Sees every transaction of which a change may be gone; nil where nothing is.
    let pruned: Snapshot?

    /// - Throws: where the text is none that Postgres makes.
    init(_ text: [UInt8], at place: Snapshot) throws {
        let fields = try JSON(parsing: text).elements
        guard fields.count == 3 else {
            throw PostgresError(.server, "Postgres tells of the outbox what the hub cannot read.")
        }
        self.text = text
        self.place = place
        file = fields[0].description
        pruned = Self.pruned(upTo: fields[1].string, sparing: fields[2].string)
    }

    /// - Parameters: as roost.meta has them, in text.
    static func pruned(upTo highest: String?, sparing spared: String?) -> Snapshot? {
        guard let highest = highest.flatMap({ UInt64($0) }) else { return nil }
        let running = (spared ?? "").split(separator: ",").compactMap { UInt64($0) }
        return Snapshot(xmax: highest + 1, running: running.filter { $0 <= highest }.sorted())
    }
}
