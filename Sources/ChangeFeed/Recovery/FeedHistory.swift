import Hub

/// What the feed knows of the past while recoveries begin.
struct FeedHistory {
    let epoch: DatabaseEpoch
    /// What the database knows of the epochs of the cursors that members bring.
    let epochs: [DatabaseEpoch: KnownEpoch]
    /// Up to here all was handed on; what a member misses ends here.
    let present: Snapshot
    let marks: Watermarks
    let restart: RestartPoint
    /// Sees every transaction of which a change may be gone; nil where nothing is.
    let pruned: Snapshot?

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
        var start = cursor
        if cursor.epoch != epoch {
            guard let known = epochs[cursor.epoch]?.start(from: cursor) else { return .refused(.otherDatabase) }
            // What it is told from here on is this hub's word.
            start = FeedCursor(epoch: epoch, seen: known.seen, window: known.window, id: known.id)
        }
        // The present was read after the client asked, so no hub can have handed on more than it sees.
        guard start.window.precedes(present) else { return .refused(.ahead) }
        return kept(start)
    }

    private func kept(_ cursor: FeedCursor) -> Start {
        if let pruned, !pruned.precedes(cursor.seen) { return .refused(.tooOld) }
        return .from(cursor)
    }
}
