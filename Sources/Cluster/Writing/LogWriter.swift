/// Writes this hub's messages to the log: numbers them, packs what waits in one batch, and sends again what the log lost.
///
/// One call is in flight; what is appended meanwhile waits for its answer and is one batch then. While the link is away,
/// what is appended is kept within the bounds of `Limits`; what they push out is a hole in the sequence, of which others
/// are told. It has no clock and does no I/O; whoever owns it runs it on one thread. Times are monotonic, in milliseconds.
package struct LogWriter {
    package struct Limits: Sendable {
        /// How long messages are kept to be sent, or sent again, in milliseconds.
        package var ringTime: Int64 = 10_000
        /// And how many bytes of them.
        package var ringBytes = 8 << 20
        /// Bytes of a batch of what is sent again.
        package var resendBytes = 1 << 20
        /// Bytes of any other batch. A message that does not fit is refused.
        package var batchBytes = LogBatch.mostBytes

        package init() {}
    }

    /// For metrics.
    package struct Statistics: Equatable, Sendable {
        /// Messages that are in the log, each once.
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
    /// The log's head when this writer came to it.
    package private(set) var since: LogPlace?
    /// The messages up to this sequence are not in this log, which is another one than before.
    package private(set) var base: UInt64 = 0
    /// The newest place of the log that this writer knows; nil while the link is away.
    package private(set) var place: LogPlace?

    /// Nothing is sent for a moment, so that more messages go in one call. Whoever owns the writer ends that, and flushes.
    package var isHeld = false

    private var ring = WriterRing()
    /// Each sequence up to here is in the log, or will never be.
    private var writtenThrough: UInt64 = 0
    /// Each sequence up to here is in the log, or others have been told of it.
    private var accountedThrough: UInt64 = 0
    /// Up to here, what the log will never have has been said.
    private var droppedThrough: UInt64 = 0
    /// Up to here, batches are such as are sent again.
    private var resendThrough: UInt64 = 0
    /// Each sequence up to here is in the statistics.
    private var countedThrough: UInt64 = 0
    /// The highest sequence that was in a call.
    package private(set) var sentThrough: UInt64 = 0
    private var inFlight: ClosedRange<UInt64>?
    private var tags: UInt64 = 0

    package init(own: HubIdentity, limits: Limits = Limits()) {
        self.own = own
        self.limits = limits
    }

    /// Whether a batch may be written at all.
    package var isOpen: Bool { place != nil }
    /// The newest message's sequence; 0 before the first.
    package var lastSequence: UInt64 { ring.next - 1 }
    package var waitingBytes: Int { ring.bytes }
    /// How many messages the log does not have yet.
    package var waiting: UInt64 { lastSequence - settled }
    /// For beats: each sequence up to here is in the log at `place` or before, or never will be.
    package var settled: UInt64 {
        if let inFlight { return inFlight.lowerBound - 1 }
        return max(writtenThrough, ring.first - 1)
    }

    /// Whether `flush` would send something, if nobody held it.
    package var isDue: Bool { place != nil && inFlight == nil && max(writtenThrough + 1, ring.first) < ring.next }

    /// Takes a message and answers its sequence. Nil: it is too large for the log. `flush` at the end of a turn sends it.
    package mutating func append(_ message: [UInt8], at now: Int64, _ actions: inout [LogWriterAction]) -> UInt64? {
        guard message.count + 5 + LogBatch.mostHeader <= limits.batchBytes else {
            statistics.refused += 1
            return nil
        }
        ring.append(message, at: now)
        prune(at: now, &actions)
        return lastSequence
    }

    /// Sends what waits, if no call is in flight and nobody holds it.
    package mutating func flush(at now: Int64, _ actions: inout [LogWriterAction]) {
        prune(at: now, &actions)
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

    /// The call in flight was answered with its entry's place.
    package mutating func acknowledged(_ place: LogPlace, at now: Int64, _ actions: inout [LogWriterAction]) {
        guard let written = inFlight, isOpen else { return }
        inFlight = nil
        self.place = place
        writtenThrough = written.upperBound
        accountedThrough = written.upperBound
        countWritten(written.upperBound)
        flush(at: now, &actions)
    }

    /// The call in flight was refused, or what became of it is not known.
    package mutating func failed(_ failure: LogPublishFailure, at now: Int64, _ actions: inout [LogWriterAction]) {
        guard inFlight != nil else { return }
        linkAway()
        if failure == .epoch { actions.append(.reopen) }
    }

    /// The connection for commands was lost, or its epoch is over. Nothing is sent before `reopened`.
    package mutating func linkAway() {
        place = nil
        inFlight = nil
    }

    /// The log is open and read up to its head: what it lacks of this hub's messages is sent again, before anything new.
    /// `ownSequence` is the newest that it has, nil where it is another log than before. What was never sent it cannot have.
    package mutating func reopened(
        _ head: LogPlace, ownSequence: UInt64?, at now: Int64, _ actions: inout [LogWriterAction]
    ) {
        guard inFlight == nil else { return }
        let ownSequence = ownSequence.map { min($0, sentThrough) }
        since = since ?? head
        place = head
        if let ownSequence {
            accountedThrough = ownSequence
            let lost = max(ownSequence, droppedThrough) + 1
            if lost < ring.first { drop(lost...ring.first - 1, &actions) }
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

    private mutating func prune(at now: Int64, _ actions: inout [LogWriterAction]) {
        guard let gone = ring.prune(before: now - limits.ringTime, mostBytes: limits.ringBytes) else { return }
        let sent = max(writtenThrough, inFlight?.upperBound ?? 0)
        if gone.upperBound > sent { drop(max(gone.lowerBound, sent + 1)...gone.upperBound, &actions) }
    }

    private mutating func drop(_ range: ClosedRange<UInt64>, _ actions: inout [LogWriterAction]) {
        statistics.dropped += UInt64(range.count)
        droppedThrough = range.upperBound
        actions.append(.dropped(range))
    }
}
