extension LogReader {
    /// Reads an entry whose turn has come, and applies its new messages.
    mutating func readEntry(_ entry: LogEntry, _ actions: inout [LogReaderAction]) {
        place = entry.place
        tag = entry.tag
        length.countEntry(entry.batch.count, at: entry.place)
        defer { recent.append(entry.place, tag: entry.tag, own: ownSequence) }
        switch LogBatch.decode(entry.batch) {
        case .value(let batch) where batch.hub == own && batch.last > sentThrough: statistics.malformed += 1
        case .value(let batch): applyBatch(batch, at: entry.place, &actions)
        case .unknownVersion: statistics.unknownVersions += 1
        case .malformed: statistics.malformed += 1
        }
    }

    private mutating func applyBatch(_ batch: LogBatch, at place: LogPlace, _ actions: inout [LogReaderAction]) {
        let isOwn = batch.hub == own
        if isOwn { ownSequence = max(ownSequence ?? 0, batch.last) }
        var progress =
            publishers[batch.hub]
            ?? startProgress(
                batch.hub, since: batch.since, base: batch.base, settled: batch.first - 1 - batch.skipped, &actions)
        progress.isEnded = false
        progress.heardIn = place.epoch
        publishers.setProgress(batch.hub, progress)
        if batch.last <= progress.applied {
            statistics.repeats += 1
            return
        }
        if batch.first > progress.applied + 1 { skipMissing(batch.hub, upTo: batch.first - 1, &actions) }
        var next = max(batch.first, progress.applied + 1)
        while next <= batch.last {
            let stop = min(batch.last, nextStop(batch.hub, from: next) ?? batch.last)
            let index = Int(next - batch.first)
            actions.append(
                .apply(
                    AppliedMessages(
                        hub: batch.hub, isOwn: isOwn, since: batch.since, place: place, index: index, sequence: next,
                        messages: batch.messages[index...Int(stop - batch.first)])))
            advanceProgress(batch.hub, stop, &actions)
            next = stop + 1
        }
    }

    /// Determines what is owed of a publisher that is new here: all of its messages, if this log reader began first;
    /// otherwise those from now on. If this log reader began in another log, or met holes, earlier messages may be missing.
    private mutating func startProgress(
        _ hub: HubIdentity, since: LogPlace, base: UInt64, settled: UInt64, _ actions: inout [LogReaderAction]
    ) -> PublisherProgress {
        let isOwedAll = origin.map { since >= $0 } ?? false
        if isOwedAll, base == 0 { return PublisherProgress(applied: 0) }
        // Messages that the publisher wrote to another log meanwhile are unknown.
        if hub != own, isOwedAll || hadHoles || origin?.epoch != lineage?.epoch {
            actions.append(.tellGap(LogGap(hub: hub, missing: nil, after: 0, reason: .missing)))
        }
        return PublisherProgress(applied: isOwedAll ? base : settled)
    }

    /// The first sequence from `next` on after which something waits.
    private func nextStop(_ hub: HubIdentity, from next: UInt64) -> UInt64? {
        let stops = [held.nextSequence(of: hub), publishers[hub]?.digest?.sequence].compactMap { $0 }.filter {
            $0 >= next
        }
        return stops.min()
    }

    /// Reports that a publisher's messages up to a sequence will never arrive.
    private mutating func skipMissing(_ hub: HubIdentity, upTo sequence: UInt64, _ actions: inout [LogReaderAction]) {
        guard let applied = publishers[hub]?.applied, applied < sequence else { return }
        if hub != own {
            let missing = applied + 1...sequence
            actions.append(.tellGap(LogGap(hub: hub, missing: missing, after: applied, reason: .missing)))
        }
        advanceProgress(hub, sequence, &actions)
    }

    /// A publisher's messages up to a sequence are complete: what waited for exactly this sequence gets its turn, and
    /// what waited for an earlier one is too late.
    private mutating func advanceProgress(_ hub: HubIdentity, _ sequence: UInt64, _ actions: inout [LogReaderAction]) {
        guard var progress = publishers[hub] else { return }
        progress.applied = sequence
        let digest = progress.digest
        if let digest, digest.sequence <= sequence { progress.digest = nil }
        publishers.setProgress(hub, progress)
        for message in held.releaseMessages(hub, upTo: sequence) {
            if message.afterSequence == sequence {
                actions.append(.deliver(message))
            } else {
                statistics.stale += 1
                actions.append(.stale(message))
            }
        }
        if let digest, digest.sequence == sequence {
            actions.append(.compareDigest(hub: hub, sequence: sequence, digest: digest.value))
        }
    }

    /// A beat arrived through the subscription, possibly this hub's own.
    package mutating func receiveBeat(_ beat: HubBeat, now: Int64, _ actions: inout [LogReaderAction]) {
        guard let lineage, place != nil, beat.hub != own else { return }
        guard beat.place.epoch == lineage.epoch else {
            // A claim about an older epoch may have been lost with it; the hub repeats it after opening this one.
            if beat.place.epoch > lineage.epoch { askToReopen(&actions) }
            return
        }
        guard claims[beat.hub] != nil || claims.count < LogPublishers.most else { return }
        claims[beat.hub] = SettledClaim(beat)
        target = max(target ?? beat.place, beat.place)
        fetchMissing(now: now, &actions)
        settleClaims(&actions)
    }

    /// Checks the beats' claims about what the log must contain by now.
    mutating func settleClaims(_ actions: inout [LogReaderAction]) {
        guard let place, let lineage, !claims.isEmpty else { return }
        for (hub, claim) in claims.sorted(by: { $0.key < $1.key }) where claim.place <= place {
            claims[hub] = nil
            var progress =
                publishers[hub]
                ?? startProgress(hub, since: claim.since, base: claim.base, settled: claim.settled, &actions)
            progress.isEnded = false
            progress.heardIn = lineage.epoch
            publishers.setProgress(hub, progress)
            advanceProgress(hub, progress.applied, &actions)
            skipMissing(hub, upTo: claim.settled, &actions)
            guard var known = publishers[hub] else { continue }
            if claim.digestSequence == known.applied {
                actions.append(
                    .compareDigest(hub: hub, sequence: claim.digestSequence, digest: claim.digest))
            } else if claim.digestSequence > known.applied {
                known.digest = (claim.digestSequence, claim.digest)
                publishers.setProgress(hub, known)
            }
        }
    }

    /// A hub ended without saying good-bye: messages it sent that this hub lacks are lost. Nothing is owed of a hub
    /// that was unknown here and had ended before this log reader began.
    package mutating func publisherEnded(_ end: HubBeat.Ended, now: Int64, _ actions: inout [LogReaderAction]) {
        let hub = end.hub
        claims[hub] = nil
        var progress = publishers[hub]
        if progress == nil {
            guard let origin, let beganAt else { return }
            guard end.since >= origin || now - end.silence >= beganAt - limits.unheardAtStart else { return }
            progress = PublisherProgress(applied: 0)
        }
        // Messages after that end would have cleared the flag.
        if progress?.isEnded ?? false { return }
        let isWhole = isCaughtUp && progress?.heardIn != nil && progress?.heardIn == epoch
        actions.append(
            .tellGap(
                LogGap(
                    hub: hub, missing: nil, after: progress?.applied ?? 0,
                    reason: isWhole ? .endedUnsent : .endedWithTail)))
        progress?.isEnded = true
        if let progress { publishers.setProgress(hub, progress) }
        for message in held.releaseMessages(hub, upTo: .max) { actions.append(.stale(message)) }
    }

    /// A message to this hub arrived. If stamped, it is due right after that exact sequence.
    package mutating func receiveDirect(_ message: DirectMessage, _ actions: inout [LogReaderAction]) {
        guard message.receiver == own.boot else { return }
        guard let stamp = message.afterSequence else { return actions.append(.deliver(message)) }
        let applied = publishers[message.sender]?.applied
        if applied == stamp { return actions.append(.deliver(message)) }
        if applied.map({ $0 > stamp }) ?? false || !held.holdBack(message) {
            statistics.stale += 1
            actions.append(.stale(message))
        }
    }
}
