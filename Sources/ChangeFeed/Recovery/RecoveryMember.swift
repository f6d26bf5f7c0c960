import Hub

/// One member on the way to the present.
final class RecoveryMember {
    let id: RecoveryID
    let question: RecoveryQuestion
    /// From where it is to be told.
    private(set) var from: RecoveryPoint
    /// The snapshot that its rows were read in; `covered` are their tables.
    private(set) var shown: Snapshot?
    private var covered: Set<UInt32> = []
    /// It was told whether what it missed can be told, or began with rows.
    var hasBegun = false
    /// The rows that it begins with are being read, or were.
    var hasRows = false
    /// What it has; the rest is yet to be told.
    private(set) var start: FeedCursor?
    /// Batches that its loop has not taken yet.
    var underway = 0
    /// It left, or its recovery is over.
    var isGone = false
    /// How often too much was missing for one slice.
    var overflows = 0
    /// Where what comes live begins for it: before the first change that waits for filters of its group, so that this one
    /// comes to it as to the others. Nil where the present is that place.
    var end: FeedCursor?
    /// Of what this sees, changes are missing, and its client was told.
    private var told: Snapshot?
    private var covering: CursorWindow?

    init(_ id: RecoveryID, _ question: RecoveryQuestion) {
        self.id = id
        self.question = question
        from = question.from
    }

    /// How often it was put off because its rows are ahead of the feed.
    var waits = 0

    /// It has what rows show, and is to be told what they do not.
    ///
    /// - Parameters:
    ///   - tables: all that it hears of these is in the rows.
    ///   - point: where it goes on; nil where it missed more, of other tables, than the rows show.
    func begins(with shown: Snapshot, of tables: Set<UInt32>, goingOnAt point: RecoveryPoint?) {
        self.shown = shown
        covered = tables
        from = point ?? from
    }

    /// Under which number the scheduler's registry knows it: to the registry it is a group of its own.
    var key: ChangeGroupID { ChangeGroupID(loop: id.loop, serial: id.serial) }

    /// More would only pile up before its socket.
    var isBehind: Bool { underway >= 2 }

    /// Its client is told now that changes are missing, whatever goes of those that this sees. What came since the
    /// loss, it is brought.
    func begins(at start: FeedCursor, telling present: Snapshot) {
        isAt(start)
        told = present
    }

    /// Whether it lacks something that may be gone, and does not know it.
    func mayMiss(_ pruned: Snapshot) -> Bool {
        (told ?? start?.seen).map { !pruned.precedes($0) } ?? false
    }

    func isAt(_ start: FeedCursor) {
        self.start = start
        covering = nil
    }

    /// Whether it is to be told of this row.
    func lacks(_ row: RecoveredRow) -> Bool {
        guard !isGone, let start, !start.has(row.transaction, row.id) else { return false }
        if let shown, let table = row.change?.table.oid, covered.contains(table), shown.sees(row.transaction) {
            return false
        }
        return end?.has(row.transaction, row.id) ?? true
    }

    /// The cursor of a member that was told all up to this id of what `upper` sees.
    ///
    /// Before the id where its own window broke off, that is not one window's part but two's, and neither is it where all
    /// ends in the middle of a window; the cursor it came with stands for them, so that whoever breaks off there again is
    /// told a few changes twice.
    func cursor(at row: Int64, of upper: Snapshot) -> String {
        guard let start else { return "" }
        if end != nil || row < start.id { return start.text }
        let window = covering ?? CursorWindow(epoch: start.epoch, seen: start.seen, window: upper)
        covering = window
        return window.cursor(row)
    }

    /// It was told all that `upper` sees, up to this id; nothing more is told of this reading.
    func brokeOff(at id: Int64, of upper: Snapshot) {
        guard let start, id >= start.id else { return }
        isAt(FeedCursor(epoch: start.epoch, seen: start.seen, window: upper, id: id))
    }
}
