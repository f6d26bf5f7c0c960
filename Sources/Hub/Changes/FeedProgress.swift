/// How far a loop has passed on the feed's events.
package struct FeedProgress {
    /// Everything up to here was passed on; see `RecoveryPoint.mark`.
    private(set) var mark = 0
    /// The cursor of the last change passed on since the mark, if all before it were passed on too; nil if there was
    /// none.
    private(set) var cursor: String?
    /// The last cursor whose changes were all passed on to everyone here: the one before the cursor now being passed
    /// on, or the one that the feed confirmed.
    private(set) var passed: Passed?
    private var last: Passed?
    /// Something without a cursor came since the mark: a change waits for a policy, or changes are lost.
    private var hasGap = false

    /// The point from which a member that got everything passed on resumes.
    var point: RecoveryPoint { cursor.map { .cursor($0) } ?? .mark(mark) }

    func position(in group: ChangeGroup) -> LoopPosition {
        LoopPosition(
            mark: mark, isPastMark: cursor != nil || hasGap, isHeard: group.liveMark.map { mark > $0 } ?? false)
    }

    package mutating func passChange(_ change: ChangeDelivery) {
        guard !change.cursor.isEmpty, !hasGap else { return }
        cursor = change.cursor
        guard last?.cursor != change.cursor else { return }
        passed = last
        last = Passed(cursor: change.cursor, serial: serial + 1)
    }

    /// The number of cursors passed on.
    var serial: Int { last?.serial ?? 0 }

    struct Passed {
        let cursor: String
        /// The number of cursors passed on up to this one.
        let serial: Int
    }

    package mutating func reachMark(_ mark: Int) {
        self.mark = max(self.mark, mark)
        cursor = nil
        hasGap = false
    }

    /// Handles the cursor after a boundary: everything up to it was passed on, whether any of it was for this loop or
    /// not.
    package mutating func reachBoundary(cursor: String) {
        let reached = Passed(cursor: cursor, serial: serial + 1)
        (passed, last) = (reached, reached)
    }

    mutating func leaveGap() { hasGap = true }
}

/// How far a loop has passed on the changes for one group.
struct LoopPosition: Equatable {
    /// Everything up to here was passed on.
    let mark: Int
    /// Something after the mark was passed on as well.
    let isPastMark: Bool
    /// Whether all changes for the group since the mark passed through this loop.
    let isHeard: Bool

    /// Whether a member at this position lacks nothing that was passed on here.
    func isReached(_ position: RecoveryPosition) -> Bool {
        guard case .mark(let other) = position.point, position.partway == nil else { return false }
        return other >= mark && !isPastMark && isHeard
    }
}
