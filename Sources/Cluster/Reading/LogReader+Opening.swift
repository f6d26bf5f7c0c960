extension LogReader {
    /// OPEN answered, on a new connection or again on the same one. `now` is monotonic, in milliseconds.
    package mutating func logOpened(_ head: LogHead, now: Int64, _ actions: inout [LogReaderAction]) {
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
            if isRewritten || !isPrefix(place, lineage) { leaveFork(lineage, now: now, &actions) }
        } else {
            origin = head.place
            beganAt = now
            place = head.place
            tag = head.tag
        }
        isRewritten = false
        fetchMissing(now: now, &actions)
    }

    /// Whether the entries read so far are a prefix of this log.
    private func isPrefix(_ place: LogPlace, _ lineage: LogLineage) -> Bool {
        guard lineage.contains(place) else { return false }
        guard place.epoch == lineage.epoch, place.offset >= lineage.head.offset else { return true }
        // Entries from the subscription may already be beyond this head. That is no step back if the head is an entry that was read.
        if lineage.head.offset < 0 { return true }
        let known = place == lineage.head ? tag : recent.tag(at: lineage.head)
        return known == lineage.tag
    }

    /// Returns to the newest place that this log shares; entries beyond it were read from a log that no longer exists.
    /// Without one, everything in this log is read. Sequences show which messages have been applied.
    private mutating func leaveFork(_ lineage: LogLineage, now: Int64, _ actions: inout [LogReaderAction]) {
        statistics.forks += 1
        publishers.doubtAll()
        if !isRewritten, let common = recent.commonPlace(with: lineage) {
            actions.append(.forked(after: common.place))
            recent.removeEntries(after: common.place)
            (place, tag, ownSequence) = (common.place, common.tag, common.own)
            return
        }
        let wasAway = verifiedAt.map { now - $0 > limits.unheardOf } ?? true
        rereadAll(lineage, &actions)
        if wasAway { reportUnknownGap(.logLost, &actions) }
    }

    /// Starts again at the oldest place that is owed.
    mutating func rereadAll(_ lineage: LogLineage, _ actions: inout [LogReaderAction]) {
        actions.append(.forked(after: nil))
        recent.removeAll()
        ownSequence = nil
        isRereading = true
        var start = LogPlace(epoch: lineage.epoch, offset: -1)
        if let origin, let next = lineage.heads.first(where: { $0.epoch >= origin.epoch }) {
            start = LogPlace(epoch: next.epoch, offset: -1)
            if next.epoch == origin.epoch { start = next.epoch == lineage.epoch ? origin : min(origin, next) }
        } else {
            // The clock of Redis went back: this epoch began after this log reader, though its number is lower.
            origin = start
        }
        place = start
        tag = start.offset < 0 ? 0 : nil
    }

    /// Reports lost entries that may belong to hubs unknown here.
    mutating func reportUnknownGap(_ reason: LogGap.Reason, _ actions: inout [LogReaderAction]) {
        hadHoles = true
        publishers.doubtAll()
        actions.append(.tellGap(LogGap(hub: nil, missing: nil, after: 0, reason: reason)))
    }

    /// Takes the value of the key `m`, requested before a PING on the subscription that has been answered since:
    /// everything up to this head must have arrived. Nil if the key does not exist.
    package mutating func confirmHead(_ head: LogHead?, now: Int64, _ actions: inout [LogReaderAction]) {
        guard isOpen, let lineage, let place else { return }
        guard let head, head.place.epoch == lineage.epoch else { return askToReopen(&actions) }
        if head.place > place {
            target = max(target ?? head.place, head.place)
            return fetchMissing(now: now, &actions)
        }
        let known = head.place == place ? tag : recent.tag(at: head.place)
        if let known, known != head.tag {
            isRewritten = true
            return askToReopen(&actions)
        }
        if isCaughtUp { verifiedAt = now }
    }
}
