import Hub

/// What the feed knows of the past while recoveries begin.
struct RecoveryGround {
    let epoch: DatabaseEpoch
    /// Up to here all was handed on; what a member misses ends here.
    let present: Snapshot
    let marks: MarkRing
    let restart: RestartPoint
    /// The highest transaction of which changes were pruned.
    let pruned: UInt64?

    enum Start {
        case from(FeedCursor)
        case refused(RecoveryRefusal)
    }

    func start(from point: RecoveryPoint) -> Start {
        switch point {
        case .cursor(let text): return judged(text)
        case .mark(let mark):
            // Mark 0 is before the first.
            guard mark > 0 else { return start(from: .restart) }
            guard let snapshot = marks.snapshot(at: mark) else { return .refused(.tooOld) }
            return kept(FeedCursor(epoch: epoch, at: snapshot))
        case .restart:
            switch restart {
            case .foreign: return .refused(.otherDatabase)
            case .snapshot(let snapshot): return kept(FeedCursor(epoch: epoch, at: snapshot))
            }
        }
    }

    /// About how many changes lie between there and the present; nil where that is not known.
    func distance(from point: RecoveryPoint) -> Int? {
        if case .mark(let mark) = point, mark > 0 { marks.changes(since: mark) } else { nil }
    }

    private func judged(_ text: String) -> Start {
        guard let cursor = FeedCursor(text) else { return .refused(.malformed) }
        guard cursor.epoch == epoch else { return .refused(.otherDatabase) }
        // The present was read after the client asked, so no hub can have handed on more than it sees.
        guard cursor.window.precedes(present) else { return .refused(.ahead) }
        return kept(cursor)
    }

    private func kept(_ cursor: FeedCursor) -> Start {
        // Of what was pruned only the highest transaction is known: all below it may be gone.
        if let pruned, pruned >= cursor.seen.xmin { return .refused(.tooOld) }
        return .from(cursor)
    }
}
