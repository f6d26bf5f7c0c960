extension LogReader {
    /// An entry arrived through the subscription.
    package mutating func receivePublished(_ entry: LogEntry, now: Int64, _ actions: inout [LogReaderAction]) {
        guard let lineage, let place else { return }
        guard entry.place.epoch == lineage.epoch else {
            statistics.otherEpochs += 1
            // A newer epoch than the opened one: a hub opened it, on this Redis or on another. An older epoch comes
            // from a server that is no longer the primary.
            return askToReopen(&actions)
        }
        if place.epoch == entry.place.epoch, entry.place.offset <= place.offset {
            statistics.repeats += 1
            let known = entry.place == place ? tag : recent.tag(at: entry.place)
            if let known, known != entry.tag {
                isRewritten = true
                askToReopen(&actions)
            }
            return
        }
        if lineage.successor(of: place) == entry.place, target.map({ $0 <= entry.place }) ?? true,
            entry.place.offset == 0 || tag == entry.previous
        {
            readEntry(entry, &actions)
        } else {
            ahead.insert(entry)
            target = max(target ?? entry.place, entry.place)
        }
        fetchMissing(now: now, &actions)
    }

    /// XRANGE answered. `reachedEnd`: with fewer entries than requested.
    package mutating func receiveFetched(
        _ id: UInt64, _ entries: [LogEntry], reachedEnd: Bool, now: Int64, _ actions: inout [LogReaderAction]
    ) {
        guard let fetching, fetching.id == id, let lineage else { return }
        self.fetching = nil
        for entry in entries {
            guard let place else { return }
            if entry.place <= place { continue }
            guard lineage.contains(epoch: entry.place.epoch) else {
                // An epoch that began after OPEN. One that lies between the known epochs belongs to no log that leads here.
                if entry.place.epoch > lineage.epoch { return askToReopen(&actions) }
                continue
            }
            let next = lineage.successor(of: place)
            if entry.place == next {
                if entry.place.epoch == place.epoch, let tag, tag != entry.previous {
                    if !isRereading {
                        statistics.forks += 1
                        publishers.doubtAll()
                        rereadAll(lineage, &actions)
                        return fetchMissing(now: now, &actions)
                    }
                    reportHole(&actions)
                }
            } else {
                reportHole(&actions)
            }
            readEntry(entry, &actions)
        }
        drainAhead(&actions)
        if reachedEnd, let place, lineage.successor(of: place) <= fetching.target {
            return handleEarlyEnd(lineage, now: now, &actions)
        }
        isDoubted = false
        fetchMissing(now: now, &actions)
    }

    /// The log ends before its reported head. Its head is requested once more; after that, the missing entries count as trimmed.
    private mutating func handleEarlyEnd(_ lineage: LogLineage, now: Int64, _ actions: inout [LogReaderAction]) {
        guard isDoubted else {
            isDoubted = true
            return askToReopen(&actions)
        }
        isDoubted = false
        reportHole(&actions)
        ahead.removeAll()
        (place, tag, target) = (lineage.head, lineage.tag, lineage.head)
        fetchMissing(now: now, &actions)
    }

    private mutating func reportHole(_ actions: inout [LogReaderAction]) {
        statistics.holes += 1
        reportUnknownGap(.trimmed, &actions)
    }

    private mutating func drainAhead(_ actions: inout [LogReaderAction]) {
        guard !ahead.isEmpty, let lineage else { return }
        while let place, lineage.successor(of: place).epoch == lineage.epoch,
            let entry = ahead.removeEntry(lineage.successor(of: place).offset)
        {
            // An entry that does not follow is read from the log, which shows what is wrong.
            guard entry.place.offset == 0 || tag == nil || entry.previous == tag else { return }
            readEntry(entry, &actions)
        }
    }

    /// Fetches what is missing up to the target, or reports that nothing is.
    mutating func fetchMissing(now: Int64, _ actions: inout [LogReaderAction]) {
        drainAhead(&actions)
        guard let lineage, let place, let target else { return }
        if lineage.successor(of: place) <= target {
            isCaughtUp = false
            guard isOpen, fetching == nil, !isReopenAsked else { return }
            lastFetch += 1
            statistics.fetches += 1
            fetching = (lastFetch, target)
            actions.append(.fetch(LogFetch(id: lastFetch, after: place, count: limits.fetchCount)))
            return
        }
        if place.epoch != lineage.epoch {
            // The earlier epochs are read to their ends, and the current one has no entry yet.
            (self.place, tag) = (LogPlace(epoch: lineage.epoch, offset: -1), 0)
        }
        settleClaims(&actions)
        guard isOpen, !isCaughtUp else { return }
        isCaughtUp = true
        isRereading = false
        isDoubted = false
        verifiedAt = now
        if !ahead.isEmpty, let offset = self.place?.offset { ahead.removeEntries(upTo: offset) }
        actions.append(.caughtUp(LogCaughtUp(place: self.place ?? place, tag: tag ?? 0, ownSequence: ownSequence)))
    }
}
