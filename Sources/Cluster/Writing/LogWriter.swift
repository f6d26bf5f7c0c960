/// Writes this hub's messages to the log: numbers them, packs waiting ones into a batch, and resends what the log lost.
///
/// One call is in flight; messages appended meanwhile wait for its answer and then form one batch. While the link is
/// away, messages are kept within `Limits`; those pushed out leave a hole in the sequence, which others are told about.
/// It has no clock and does no I/O; its owner calls it on one thread. Times are monotonic, in milliseconds.
package struct LogWriter {
    package struct Limits: Sendable {
        /// How long messages are kept for sending or resending, in milliseconds.
        package var ringTime: Int64 = 10_000
        /// The limit of kept messages, in bytes.
        package var ringBytes = 8 << 20
        /// Bytes of a batch that is resent.
        package var resendBytes = 1 << 20
        /// Bytes of any other batch. A message that does not fit is refused.
        package var batchBytes = LogBatch.mostBytes

        package init() {}
    }

    /// For metrics.
    package struct Statistics: Equatable, Sendable {
        /// Messages in the log, each counted once.
        package var written: UInt64 = 0
        package var dropped: UInt64 = 0
        package var sentAgain: UInt64 = 0
        package var refused: UInt64 = 0
        package var calls: UInt64 = 0

        package init() {}
    }

    package let own: HubIdentity
    package let limits: Limits
    package private(set) var statistics = Statistics()
    /// The log's head when this writer first opened it.
    package private(set) var since: LogPlace?
    /// Messages up to this sequence are not in this log, because it is another one than before.
    package private(set) var base: UInt64 = 0
    /// The newest known place of the log; nil while the link is away.
    package private(set) var place: LogPlace?

    /// Sending is paused for a moment, so that more messages share a call. The owner ends the pause and flushes.
    package var isHeld = false

    private var ring = WriterRing()
    /// Each sequence up to here is in the log or never will be.
    private var writtenThrough: UInt64 = 0
    /// Each sequence up to here is in the log, or others have been told that it is missing.
    private var accountedThrough: UInt64 = 0
    /// Drops have been reported up to here.
    private var droppedThrough: UInt64 = 0
    /// Batches that begin at or before this sequence are resends.
    private var resendThrough: UInt64 = 0
    /// Each sequence up to here is counted in the statistics.
    private var countedThrough: UInt64 = 0
    /// The highest sequence that was part of a call.
    package private(set) var sentThrough: UInt64 = 0
    private var inFlight: ClosedRange<UInt64>?
    private var tags: UInt64 = 0

    package init(own: HubIdentity, limits: Limits = Limits()) {
        self.own = own
        self.limits = limits
    }

    /// Whether batches can be written.
    package var isOpen: Bool { place != nil }
    /// The newest message's sequence; 0 before the first.
    package var lastSequence: UInt64 { ring.next - 1 }
    package var waitingBytes: Int { ring.bytes }
    /// The number of messages that the log does not have yet.
    package var waiting: UInt64 { lastSequence - settled }
    /// Each sequence up to here is in the log at `place` or earlier, or never will be; for beats.
    package var settled: UInt64 {
        if let inFlight { return inFlight.lowerBound - 1 }
        return max(writtenThrough, ring.first - 1)
    }

    /// Whether `flush` would send something if sending were not paused.
    package var isDue: Bool { place != nil && inFlight == nil && max(writtenThrough + 1, ring.first) < ring.next }

    /// Accepts a message and returns its sequence; nil if it is too large for the log. `flush` at the end of a turn sends it.
    package mutating func append(_ message: [UInt8], at now: Int64, _ actions: inout [LogWriterAction]) -> UInt64? {
        guard message.count + 5 + LogBatch.mostHeader <= limits.batchBytes else {
            statistics.refused += 1
            return nil
        }
        ring.append(message, at: now)
        pruneRing(at: now, &actions)
        return lastSequence
    }

    /// Sends waiting messages unless a call is in flight or sending is paused.
    package mutating func flush(at now: Int64, _ actions: inout [LogWriterAction]) {
        pruneRing(at: now, &actions)
        guard let place, let since, inFlight == nil, !isHeld else { return }
        let first = max(writtenThrough + 1, ring.first)
        guard first < ring.next else { return }
        let isResend = first <= resendThrough
        let messages = ring.messages(
            from: first, mostBytes: isResend ? min(limits.resendBytes, limits.batchBytes) : limits.batchBytes)
        let batch = LogBatch(
            hub: own, since: since, base: base, skipped: first - 1 - min(accountedThrough, first - 1), first: first,
            messages: messages)
        if first <= sentThrough { statistics.sentAgain += min(batch.last, sentThrough) - first + 1 }
        statistics.calls += 1
        sentThrough = max(sentThrough, batch.last)
        inFlight = first...batch.last
        tags += 1
        let tag = max(1, FixedHash.mix(own.boot &+ tags &* 0x9e37_79b9_7f4a_7c15))
        actions.append(
            .publish(LogPublish(epoch: place.epoch, tag: tag, batch: batch.encoded(), sequences: first...batch.last)))
    }

    /// The call in flight succeeded; the answer is its entry's place.
    package mutating func publishSucceeded(_ place: LogPlace, at now: Int64, _ actions: inout [LogWriterAction]) {
        guard let written = inFlight, isOpen else { return }
        inFlight = nil
        self.place = place
        writtenThrough = written.upperBound
        accountedThrough = written.upperBound
        countWritten(written.upperBound)
        flush(at: now, &actions)
    }

    /// The call in flight was refused, or its outcome is unknown.
    package mutating func publishFailed(_ failure: LogPublishFailure, at now: Int64, _ actions: inout [LogWriterAction])
    {
        guard inFlight != nil else { return }
        linkWasLost()
        if failure == .epoch { actions.append(.reopen) }
    }

    /// The connection for commands was lost, or its epoch is over. Nothing is sent before the log is open again.
    package mutating func linkWasLost() {
        place = nil
        inFlight = nil
    }

    /// The log is open and read up to its head: this hub's messages that it lacks are resent before anything new.
    /// `ownSequence` is the newest one it has; nil if it is another log than before. The log cannot have what was never sent.
    package mutating func logReopened(
        _ head: LogPlace, ownSequence: UInt64?, at now: Int64, _ actions: inout [LogWriterAction]
    ) {
        guard inFlight == nil else { return }
        let ownSequence = ownSequence.map { min($0, sentThrough) }
        since = since ?? head
        place = head
        if let ownSequence {
            accountedThrough = ownSequence
            let lost = max(ownSequence, droppedThrough) + 1
            if lost < ring.first { dropMessages(lost...ring.first - 1, &actions) }
        } else {
            since = head
            base = ring.first - 1
            accountedThrough = base
        }
        writtenThrough = ownSequence ?? 0
        // The answer to a call may have been lost with the link.
        countWritten(writtenThrough)
        resendThrough = lastSequence
        flush(at: now, &actions)
    }

    private mutating func countWritten(_ last: UInt64) {
        let counted = max(countedThrough, droppedThrough)
        guard last > counted else { return }
        statistics.written += last - counted
        countedThrough = last
    }

    private mutating func pruneRing(at now: Int64, _ actions: inout [LogWriterAction]) {
        guard let gone = ring.pruneOldest(before: now - limits.ringTime, mostBytes: limits.ringBytes) else { return }
        let sent = max(writtenThrough, inFlight?.upperBound ?? 0)
        if gone.upperBound > sent { dropMessages(max(gone.lowerBound, sent + 1)...gone.upperBound, &actions) }
    }

    private mutating func dropMessages(_ range: ClosedRange<UInt64>, _ actions: inout [LogWriterAction]) {
        statistics.dropped += UInt64(range.count)
        droppedThrough = range.upperBound
        actions.append(.dropped(range))
    }
}
