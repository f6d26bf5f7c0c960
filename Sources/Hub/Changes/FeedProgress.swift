/// How far a loop has passed on what the feed brings.
package struct FeedProgress {
    /// All up to here; see `RecoveryPoint.mark`.
    private(set) var mark = 0
    /// The cursor of the last change that was passed on since the mark, where all before it was as well; nil if there was
    /// none.
    private(set) var cursor: String?
    /// The last cursor of which all was passed on, to everybody here: before the one whose changes are being passed on, or where the
    /// feed says that it is.
    private(set) var passed: Passed?
    private var last: Passed?
    /// Since the mark something came that no cursor stands for: a change waits for a policy, or changes are gone.
    private var hasGap = false

    /// Where somebody goes on who got all that was passed on.
    var point: RecoveryPoint { cursor.map { .cursor($0) } ?? .mark(mark) }

    func position(in group: ChangeGroup) -> LoopPosition {
        LoopPosition(
            mark: mark, isPastMark: cursor != nil || hasGap, isHeard: group.liveMark.map { mark > $0 } ?? false)
    }

    package mutating func pass(_ change: ChangeDelivery) {
        guard !change.cursor.isEmpty, !hasGap else { return }
        cursor = change.cursor
        guard last?.cursor != change.cursor else { return }
        passed = last
        last = Passed(cursor: change.cursor, serial: serial + 1)
    }

    /// How many cursors were passed on.
    var serial: Int { last?.serial ?? 0 }

    struct Passed {
        let cursor: String
        /// How many were passed on up to it.
        let serial: Int
    }

    package mutating func reach(_ mark: Int) {
        self.mark = max(self.mark, mark)
        cursor = nil
        hasGap = false
    }

    /// Behind a boundary: all up to the cursor was passed on, whether something of it was for this loop or not.
    package mutating func reach(cursor: String) {
        let reached = Passed(cursor: cursor, serial: serial + 1)
        (passed, last) = (reached, reached)
    }

    mutating func leaveGap() { hasGap = true }
}

/// How far a loop has handed on what concerns one group.
struct LoopPosition: Equatable {
    /// All up to here.
    let mark: Int
    /// And something that came since.
    let isPastMark: Bool
    /// Whether all that was handed on since the mark and concerns the group came by here.
    let isHeard: Bool

    /// Whether nothing was handed on here that somebody lacks who stands there.
    func isReached(_ position: RecoveryPosition) -> Bool {
        guard case .mark(let other) = position.point, position.partway == nil else { return false }
        return other >= mark && !isPastMark && isHeard
    }
}
