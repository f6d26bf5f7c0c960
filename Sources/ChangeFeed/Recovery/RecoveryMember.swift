import Hub

/// One member on its way to the present.
final class RecoveryMember {
    let id: RecoveryID
    let question: RecoveryQuestion
    /// The point from which it must be sent changes.
    private(set) var from: RecoveryPoint
    /// The snapshot in which its rows were read; `covered` are their tables.
    private(set) var shown: Snapshot?
    private var covered: Set<UInt32> = []
    /// True once it was told whether its missed changes can be sent, or began with rows.
    var hasBegun = false
    /// True if the rows that it starts from are being read, or have been.
    var hasRows = false
    /// The position it has reached; the rest is yet to be sent.
    private(set) var start: FeedCursor?
    /// Batches that its loop has not taken yet.
    var underway = 0
    /// True if it left or its recovery is over.
    var isGone = false
    /// Number of times that too much was missing for one slice.
    var overflows = 0
    /// The start of its live changes: before the first change that waits for filters of its group, which therefore reaches
    /// it together with the other members. Nil if live changes begin at the present.
    var end: FeedCursor?
    /// Its client was told that changes which this snapshot sees are missing.
    private var told: Snapshot?
    private var covering: CursorWindow?

    init(_ id: RecoveryID, _ question: RecoveryQuestion) {
        self.id = id
        self.question = question
        from = question.from
    }

    /// Number of times it was put off because its rows are ahead of the feed.
    var waits = 0

    /// Starts a member that has rows, and must be sent the changes that they do not show.
    ///
    /// - Parameters:
    ///   - tables: tables for which the rows show everything the member subscribed to.
    ///   - point: where it continues; nil if it missed more, in other tables, than the rows show.
    func beginRows(with shown: Snapshot, of tables: Set<UInt32>, goingOnAt point: RecoveryPoint?) {
        self.shown = shown
        covered = tables
        from = point ?? from
    }

    /// The number by which the scheduler's registry knows it: to the registry it is a group of its own.
    var key: ChangeGroupID { ChangeGroupID(loop: id.loop, serial: id.serial) }

    /// True if further batches would only pile up before its socket.
    var isBehind: Bool { underway >= 2 }

    /// Starts a member whose client has just been told that changes are missing; this also covers later deletions of
    /// changes that `present` sees. Changes since the loss are sent.
    func beginAfterLoss(at start: FeedCursor, telling present: Snapshot) {
        moveTo(start)
        told = present
    }

    /// True if it lacks changes that may be gone, without having been told.
    func mayMiss(_ pruned: Snapshot) -> Bool {
        (told ?? start?.seen).map { !pruned.precedes($0) } ?? false
    }

    func moveTo(_ start: FeedCursor) {
        self.start = start
        covering = nil
    }

    /// True if the row must be sent to it.
    func lacksRow(_ row: RecoveredRow) -> Bool {
        guard !isGone, let start, !start.hasChange(row.transaction, row.id) else { return false }
        if let shown, let table = row.change?.table.oid, covered.contains(table), shown.sees(row.transaction) {
            return false
        }
        return end?.hasChange(row.transaction, row.id) ?? true
    }

    /// The cursor of a member that was sent everything up to this id that `upper` sees.
    ///
    /// Below the id at which its own window broke off, the position spans two windows; likewise if the recovery ends in the
    /// middle of a window. The cursor it came with then stands for the position, so a client that breaks off there again
    /// gets a few changes twice.
    func cursor(at row: Int64, of upper: Snapshot) -> String {
        guard let start else { return "" }
        if end != nil || row < start.id { return start.text }
        let window = covering ?? CursorWindow(epoch: start.epoch, seen: start.seen, window: upper)
        covering = window
        return window.cursorText(row)
    }

    /// Ends its part in this read: it was sent everything up to this id that `upper` sees.
    func breakOff(at id: Int64, of upper: Snapshot) {
        guard let start, id >= start.id else { return }
        moveTo(FeedCursor(epoch: start.epoch, seen: start.seen, window: upper, id: id))
    }
}
