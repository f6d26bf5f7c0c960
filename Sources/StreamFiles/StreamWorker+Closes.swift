import Streams

/// Ends with a row (`streams.on_close`): an end is recorded, passed to the committer with its row, and takes effect
/// once that is committed. Requests for the stream wait meanwhile, in order.
extension StreamWorker {
    /// The interval between questions about a commit whose outcome is unknown.
    private static let settleInterval = Duration.seconds(1)
    /// How long another hub may take to commit an end before this one asks for the outcome, which ends the attempt.
    private static let patience = Duration.seconds(10)

    // MARK: Requests

    /// Queues a request whose answer depends on an end that is being committed, and returns whether it did. The request
    /// is performed or refused once the outcome is known.
    func queueIfClosing(_ asked: FileStreamService.Request) -> Bool {
        guard asked.dependsOnCloses, let stream = streams[asked.name], let waiting = stream.waiting else {
            return false
        }
        if waiting.requests.count < StreamWaiters.most {
            stream.waiting?.requests.append(asked)
        } else {
            asked.answer(refusalAnswer(.unavailable))
        }
        return true
    }

    /// Records a close that must be committed. It is passed on once it is on the disk.
    ///
    /// - Parameters:
    ///   - record: the append that closes the stream.
    ///   - bearer: the closer; the row is written with its rights unless the rule names a role.
    /// - Returns: false if the record closes nothing, or the stream ends without a row.
    func beginClose(
        of stream: KeptStream, _ record: StreamRecord, stamp: ProducerStamp?, bearer: StreamBearer?,
        _ asked: FileStreamService.Request
    ) -> Bool {
        guard case .appended(let bytes, let ending?, let producer, let sequence) = record,
            let rule = setup.closeRules.first(for: stream.log.name, ending.reason),
            let bearer = rule.bearer ?? bearer
        else { return false }
        startClosing(
            .closing(bytes, ending, producer: producer, sequence: sequence), of: stream,
            .init(rule: rule, bearer: bearer, stamp: stamp, request: asked))
        return true
    }

    /// Ends the stream as cancelled, with a row if a rule applies.
    ///
    /// - Parameter bearer: the canceller; the row is written with its rights unless the rule names a role. Nil for an operator.
    func cancelStream(
        _ stream: KeptStream, by bearer: StreamBearer?, _ asked: FileStreamService.Request, at now: Int64
    ) {
        guard stream.log.ending == nil, let rule = setup.closeRules.first(for: stream.log.name, .cancelled) else {
            if stream.log.ending == nil { endStream(stream, .cancelled, at: now) }
            stream.trouble = nil
            return stream.stageAnswer(.done(stream.snapshot), asked)
        }
        guard let bearer = rule.bearer ?? bearer else {
            let sentence = rule.failureText("an operator has no token: the entry needs a role")
            return stream.stageAnswer(refusalAnswer(.closeFailed(sentence)), asked)
        }
        startClosing(
            .closing([], StreamEnding(.cancelled, at: now), producer: nil, sequence: nil), of: stream,
            .init(rule: rule, bearer: bearer, stamp: nil, request: asked))
    }

    /// Ends a stream whose producer is gone, with a row if a rule applies. While the row cannot be written, the stream
    /// stays as it is, and the end is retried.
    func abortStream(_ stream: KeptStream, at now: Int64) {
        guard let rule = setup.closeRules.first(for: stream.log.name, .aborted), let bearer = rule.bearer else {
            addToBatch(stream)
            endStream(stream, .aborted, at: now)
            if let trouble = stream.trouble { reportUnclosed(stream, .aborted, trouble.sentence) }
            return
        }
        guard stream.trouble.map({ $0.retryAt <= .now }) ?? true else { return }
        addToBatch(stream)
        startClosing(
            .closing([], StreamEnding(.aborted, at: now), producer: nil, sequence: nil), of: stream,
            .init(rule: rule, bearer: bearer, stamp: nil, request: nil))
    }

    private func startClosing(_ record: StreamRecord, of stream: KeptStream, _ closer: StreamWaiters.Closer) {
        stream.stageRecord(record)
        stream.waiting = StreamWaiters(closer: closer)
    }

    // MARK: Commits

    /// Passes a recorded end to the committer.
    func continueClose(with stream: KeptStream) {
        guard let waiting = stream.waiting, !waiting.isAsked, let closer = waiting.closer else { return }
        guard let closing = stream.log.closing, let committer = setup.committer else {
            // The end could not be written.
            closer.request?.answer(refusalAnswer(.noRoom))
            return releaseWaiters(stream)
        }
        stream.waiting?.isAsked = true
        let name = stream.log.name
        let commit = StreamCommit(
            key: closing.key, name: name, content: stream.content(closing: closing),
            isBinary: stream.log.configuration.content == .binary, status: closing.ending.reason,
            startedAt: stream.log.createdAt, endedAt: closing.ending.at, bearer: closer.bearer, rule: closer.rule)
        committer.commitEnd(commit) { [mailbox] outcome in
            mailbox?.post { $0.outcomes.append((commit.key, name, outcome)) }
        }
    }

    /// Handles the outcome of a commit.
    func receiveOutcome(_ outcome: StreamCommitOutcome, of key: StreamCommitKey, _ name: StreamName) {
        guard let stream = streams[name], let closing = stream.log.closing, closing.key == key else { return }
        addToBatch(stream)
        let closer = stream.waiting?.closer
        switch outcome {
        case .committed(let row):
            stream.stageRecord(.closed(row: row))
            if closing.ending.reason == .complete { stream.countAppend(at: Self.unix) }
            growShare(stream, by: closing.bytes.count)
            if let closer, let request = closer.request {
                stream.stageAnswer(closeAnswer(to: closer, of: stream), request)
            }
            stream.trouble = nil
            finishClose(stream, key)
        case .refused(let sentence):
            stream.stageRecord(.reopened)
            if let closer {
                let sentence = closer.rule.failureText(sentence)
                stream.noteTrouble(sentence, at: Self.unix)
                if let request = closer.request { stream.stageAnswer(refusalAnswer(.closeFailed(sentence)), request) }
            }
            finishClose(stream, key)
        case .unknown:
            if let request = closer?.request { stream.stageAnswer(refusalAnswer(.unavailable), request) }
            for request in stream.waiting?.requests ?? [] { stream.stageAnswer(refusalAnswer(.unavailable), request) }
            askLater(of: stream)
            stream.waiting?.isUnknown = true
            commitBatches()
        }
    }

    /// The answer for the request that ended the stream.
    private func closeAnswer(to closer: StreamWaiters.Closer, of stream: KeptStream) -> StreamAnswer {
        if case .cancel? = closer.request?.request { return .done(stream.snapshot) }
        return .appended(stream.snapshot, isRepeated: false, stamp: closer.stamp)
    }

    /// Writes the outcome of a commit; after that, waiting requests continue. If the write fails, asking again reveals what was committed.
    private func finishClose(_ stream: KeptStream, _ key: StreamCommitKey) {
        stream.waiting?.closer = nil
        commitBatches()
        guard stream.log.closing == nil else {
            return askLater(of: stream)
        }
        setup.committer?.forgetAttempt(key)
        compactFile(stream)
        releaseWaiters(stream)
    }

    /// Failed attempts leave their content in the file, which is rewritten if that is much. The shared log is not.
    private func compactFile(_ stream: KeptStream) {
        guard sharing == nil, stream.log.ending == nil, !stream.isChanged,
            stream.length - stream.log.kept > Self.mostLeft
        else { return }
        // If the write fails, the file stays as it was.
        _ = stream.dropBytes(before: stream.log.start, folder)
    }

    private static let mostLeft = 16_777_216

    /// Another hub commits an end: if that hub dies meanwhile, this one must ask for the outcome.
    func closesElsewhere(_ stream: KeptStream) {
        stream.waiting = StreamWaiters(isAsked: true, settleAt: .now + Self.patience)
    }

    /// Another hub learned the outcome of an end.
    func closedElsewhere(_ stream: KeptStream) {
        if let closer = stream.waiting?.closer {
            closer.request?.answer(
                stream.log.ending != nil ? closeAnswer(to: closer, of: stream) : refusalAnswer(.unavailable))
        }
        releaseWaiters(stream)
    }

    /// Performs the requests that waited for the end.
    private func releaseWaiters(_ stream: KeptStream) {
        let requests = stream.waiting?.requests ?? []
        stream.waiting = nil
        for request in requests { performRequest(request) }
    }

    // MARK: Unknown outcomes

    private func askLater(of stream: KeptStream) {
        stream.waiting = StreamWaiters(isAsked: true, settleAt: .now + Self.settleInterval)
    }

    /// Asks for the unknown outcome of a commit, for example after a restart, once that is due.
    func askOutcome(of stream: KeptStream) {
        guard let time = stream.waiting?.settleAt, time <= .now, let key = stream.log.closing?.key else { return }
        guard let committer = setup.committer else { return }
        stream.waiting?.settleAt = nil
        let name = stream.log.name
        committer.settleAttempt(key) { [mailbox] outcome in mailbox?.post { $0.outcomes.append((key, name, outcome)) } }
    }

    // MARK: Ends that fail

    /// Ends a stream without its row if the row could not be written for too long; otherwise the stream would be kept
    /// forever. The operator is told.
    ///
    /// - Returns: whether that was due.
    func giveUpClosing(_ stream: KeptStream, at now: Int64) -> Bool {
        guard sharing?.mayWrite != false else { return false }
        let closing = stream.log.closing
        if let waiting = stream.waiting {
            // An attempt under way, here or at another hub, is waited for: it may be committed at this moment.
            guard let closing, waiting.isUnknown, waiting.settleAt != nil,
                now - closing.ending.at >= setup.limits.closedWithin
            else {
                return false
            }
        } else {
            guard let trouble = stream.trouble, now - trouble.since >= setup.limits.closedWithin else { return false }
        }
        addToBatch(stream)
        if closing != nil { stream.stageRecord(.reopened) }
        let reason = closing?.ending.reason == .cancelled ? StreamEnding.Reason.cancelled : .aborted
        endStream(stream, reason, at: now)
        commitBatches()
        guard streams[stream.log.name] === stream, stream.log.ending != nil, stream.log.closing == nil else {
            return true
        }
        reportUnclosed(
            stream, reason,
            stream.trouble?.sentence
                ?? "the database could not be asked whether attempt \(closing?.key.attempt ?? 0) of the stream "
                + "\(Int64(bitPattern: stream.log.id.number)) in roost.stream_commit is committed")
        releaseWaiters(stream)
        return true
    }

    private func reportUnclosed(_ stream: KeptStream, _ reason: StreamEnding.Reason, _ sentence: String) {
        stream.trouble = nil
        figures.unclosed += 1
        setup.logger.error(
            "The stream \(stream.log.name.text) has ended (\(reason.rawValue)) without its row of streams.on_close: \(sentence)"
        )
    }
}

/// The requests that wait for an end to be committed.
struct StreamWaiters {
    /// The origin of an end: a producer, a canceller, or the hub itself for a producer that is gone.
    struct Closer {
        let rule: CloseRule
        let bearer: StreamBearer
        let stamp: ProducerStamp?
        /// Nil for the hub itself.
        let request: FileStreamService.Request?
    }

    /// Nil once its request is answered, and after a restart.
    var closer: Closer?
    /// Requests that arrived meanwhile, in order.
    var requests: [FileStreamService.Request] = []
    /// The end was passed to the committer.
    var isAsked = false
    /// The outcome was requested, and the database did not say.
    var isUnknown = false
    /// When to ask for the outcome.
    var settleAt: ContinuousClock.Instant?

    /// Further requests are refused, because each may have a body.
    static let most = 100
}

/// Why a stream cannot end: the statement for its row fails.
struct CloseTrouble {
    /// The failure of the last attempt.
    var sentence: String
    /// The time of the first attempt, in milliseconds since 1970.
    let since: Int64
    /// The pause between attempts of the hub itself.
    var pause = Duration.seconds(1)
    var retryAt = ContinuousClock.now + .seconds(1)

    static let longestPause = Duration.seconds(60)
}

extension KeptStream {
    fileprivate func noteTrouble(_ sentence: String, at now: Int64) {
        guard var trouble else { return trouble = CloseTrouble(sentence: sentence, since: now) }
        trouble.sentence = sentence
        trouble.pause = min(trouble.pause * 2, CloseTrouble.longestPause)
        trouble.retryAt = .now + trouble.pause
        self.trouble = trouble
    }
}

extension FileStreamService.Request {
    /// Whether its answer depends on whether the stream is closed.
    fileprivate var dependsOnCloses: Bool {
        switch request {
        case .create, .append, .cancel, .delete, .abort: true
        case .hold, .release, .touch: false
        }
    }
}
