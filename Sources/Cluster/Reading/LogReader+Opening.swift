extension LogReader {
    /// OPEN answered, on a new connection or once more on the same. `now` is monotonic, in milliseconds.
    package mutating func opened(_ head: LogHead, now: Int64, _ actions: inout [LogReaderAction]) {
        isOpen = true
        isReopenAsked = false
        fetching = nil
        isCaughtUp = false
        let lineage = LogLineage(head)
        if lineage.epoch != self.lineage?.epoch {
            claims.removeAll()
            ahead.removeAll()
            isDoubted = false
        }
        self.lineage = lineage
        target = head.place
        if let place {
            if isRewritten || !follows(place, lineage) { leaveFork(lineage, now: now, &actions) }
        } else {
            origin = head.place
            beganAt = now
            place = head.place
            tag = head.tag
        }
        isRewritten = false
        readOn(now: now, &actions)
    }

    /// Whether what was read is a beginning of this log.
    private func follows(_ place: LogPlace, _ lineage: LogLineage) -> Bool {
        guard lineage.has(place) else { return false }
        guard place.epoch == lineage.epoch, place.offset >= lineage.head.offset else { return true }
        // Entries that came by the subscription meanwhile may be beyond this head. That is no step back, if the head is
        // an entry that was read.
        if lineage.head.offset < 0 { return true }
        let known = place == lineage.head ? tag : recent.tag(at: lineage.head)
        return known == lineage.tag
    }

    /// Goes back to the newest place that this log has too; what lies beyond it was read from a log that is no more. If
    /// there is none, all is read that this log has. What was applied is known by its sequences.
    private mutating func leaveFork(_ lineage: LogLineage, now: Int64, _ actions: inout [LogReaderAction]) {
        statistics.forks += 1
        publishers.doubtAll()
        if !isRewritten, let common = recent.common(with: lineage) {
            actions.append(.forked(after: common.place))
            recent.cut(after: common.place)
            (place, tag, ownSequence) = (common.place, common.tag, common.own)
            return
        }
        let wasAway = verifiedAt.map { now - $0 > limits.unheardOf } ?? true
        readAllAgain(lineage, &actions)
        if wasAway { tellUnheardOf(.logLost, &actions) }
    }

    /// Begins at the oldest place that is owed.
    mutating func readAllAgain(_ lineage: LogLineage, _ actions: inout [LogReaderAction]) {
        actions.append(.forked(after: nil))
        recent.removeAll()
        ownSequence = nil
        isRereading = true
        var start = LogPlace(epoch: lineage.epoch, offset: -1)
        if let origin, let next = lineage.heads.first(where: { $0.epoch >= origin.epoch }) {
            start = LogPlace(epoch: next.epoch, offset: -1)
            if next.epoch == origin.epoch { start = next.epoch == lineage.epoch ? origin : min(origin, next) }
        } else {
            // The engine's clock went back: this epoch began after this reader, though its number is lower.
            origin = start
        }
        place = start
        tag = start.offset < 0 ? 0 : nil
    }

    /// Entries are gone that nobody of whom this hub knows may account for.
    mutating func tellUnheardOf(_ reason: LogGap.Reason, _ actions: inout [LogReaderAction]) {
        hadHoles = true
        publishers.doubtAll()
        actions.append(.tellGap(LogGap(hub: nil, missing: nil, after: 0, reason: reason)))
    }

    /// What the key `m` held, asked before a PING of the subscription whose pong has come since: all up to this head must
    /// have come. Nil: there is no such key.
    package mutating func headConfirmed(_ head: LogHead?, now: Int64, _ actions: inout [LogReaderAction]) {
        guard isOpen, let lineage, let place else { return }
        guard let head, head.place.epoch == lineage.epoch else { return askToReopen(&actions) }
        if head.place > place {
            target = max(target ?? head.place, head.place)
            return readOn(now: now, &actions)
        }
        let known = head.place == place ? tag : recent.tag(at: head.place)
        if let known, known != head.tag {
            isRewritten = true
            return askToReopen(&actions)
        }
        if isCaughtUp { verifiedAt = now }
    }
}
