import Streams

/// Closes with a row: a close is written down, handed to whoever commits it with its row, and counts when that is done. What is
/// asked of the stream meanwhile waits, in order.
extension StreamWorker {
    /// Between two questions what became of a commit, while nobody knows.
    private static let settleInterval = Duration.seconds(1)
    /// For how long another hub may commit a close before this one asks what became of it: by that it ends the attempt.
    private static let patience = Duration.seconds(10)

    // MARK: Whoever asks

    /// Whether a request has to wait, as its answer depends on a close that is being committed. It is performed, or refused, when it
    /// is known what became of that.
    func waits(_ asked: FileStreamService.Request) -> Bool {
        guard asked.dependsOnCloses, let stream = streams[asked.name], let waiting = stream.waiting else {
            return false
        }
        if waiting.requests.count < StreamWaiters.most {
            stream.waiting?.requests.append(asked)
        } else {
            asked.answer(refused(.unavailable))
        }
        return true
    }

    /// Writes down a close that has to be committed. It is handed on when it is on the disk (`goOn`).
    ///
    /// - Parameters:
    ///   - record: the append that closes the stream.
    ///   - bearer: whoever closes it, as whom the row is written.
    /// - Returns: false where the record closes nothing, or nobody commits rows.
    func beginClose(
        of stream: KeptStream, _ record: StreamRecord, stamp: ProducerStamp?, bearer: StreamBearer?,
        _ asked: FileStreamService.Request
    ) -> Bool {
        guard case .appended(let bytes, let ending?, let producer, let sequence) = record, setup.commitsRows,
            let bearer
        else { return false }
        stream.write(.closing(bytes, ending, producer: producer, sequence: sequence))
        stream.waiting = StreamWaiters(closer: (stamp, bearer, asked))
        return true
    }

    // MARK: Whoever commits

    /// A close that is written down is handed to whoever commits it.
    func goOn(with stream: KeptStream) {
        guard let waiting = stream.waiting, !waiting.isAsked, let closer = waiting.closer else { return }
        guard let closing = stream.log.closing, let committer = setup.committer else {
            // It could not be written down.
            closer.request.answer(refused(.noRoom))
            return release(stream)
        }
        stream.waiting?.isAsked = true
        let name = stream.log.name
        let commit = StreamCommit(
            key: closing.key, name: name, content: stream.content(closing: closing),
            isBinary: stream.log.configuration.content == .binary, status: closing.ending.reason,
            startedAt: stream.log.createdAt, endedAt: closing.ending.at, bearer: closer.bearer)
        committer.commit(commit) { [mailbox] outcome in
            mailbox?.post { $0.outcomes.append((commit.key, name, outcome)) }
        }
    }

    /// What became of a commit.
    func take(_ outcome: StreamCommitOutcome, of key: StreamCommitKey, _ name: StreamName) {
        guard let stream = streams[name], let closing = stream.log.closing, closing.key == key else { return }
        touch(stream)
        switch outcome {
        case .committed(let row):
            stream.write(.closed(row: row))
            stream.countAppend(at: Self.unix)
            grow(stream, by: closing.bytes.count)
            if let closer = stream.waiting?.closer {
                stream.answer(.appended(stream.snapshot, isRepeated: false, stamp: closer.stamp), closer.request)
            }
            settles(stream, key)
        case .refused(let sentence):
            stream.write(.reopened)
            if let closer = stream.waiting?.closer { stream.answer(refused(.closeFailed(sentence)), closer.request) }
            settles(stream, key)
        case .unknown:
            if let closer = stream.waiting?.closer { stream.answer(refused(.unavailable), closer.request) }
            for request in stream.waiting?.requests ?? [] { stream.answer(refused(.unavailable), request) }
            askLater(of: stream)
            commit()
        }
    }

    /// Writes what became of a commit, after which whoever waited goes on. Where that could not be written, what is committed is found
    /// again by asking.
    private func settles(_ stream: KeptStream, _ key: StreamCommitKey) {
        stream.waiting?.closer = nil
        commit()
        guard stream.log.closing == nil else {
            return askLater(of: stream)
        }
        setup.committer?.forget(key)
        release(stream)
    }

    /// Another hub commits a close: should it die over it, somebody has to ask what became of that.
    func closesElsewhere(_ stream: KeptStream) {
        stream.waiting = StreamWaiters(isAsked: true, settleAt: .now + Self.patience)
    }

    /// Another hub found out what became of a close.
    func closedElsewhere(_ stream: KeptStream) {
        if let closer = stream.waiting?.closer {
            let isClosed = stream.log.ending != nil
            closer.request.answer(
                isClosed
                    ? .appended(stream.snapshot, isRepeated: false, stamp: closer.stamp) : refused(.unavailable))
        }
        release(stream)
    }

    /// Whoever waited for the close goes on.
    private func release(_ stream: KeptStream) {
        let requests = stream.waiting?.requests ?? []
        stream.waiting = nil
        for request in requests { perform(request) }
    }

    // MARK: What nobody knows

    private func askLater(of stream: KeptStream) {
        stream.waiting = StreamWaiters(isAsked: true, settleAt: .now + Self.settleInterval)
    }

    /// Asks what became of a commit whose outcome is not known, as after a restart, where it is time to.
    func askWhatBecame(of stream: KeptStream) {
        guard let time = stream.waiting?.settleAt, time <= .now, let key = stream.log.closing?.key else { return }
        guard let committer = setup.committer else { return }
        stream.waiting?.settleAt = nil
        let name = stream.log.name
        committer.settle(key) { [mailbox] outcome in mailbox?.post { $0.outcomes.append((key, name, outcome)) } }
    }
}

/// Who waits for a close to be committed.
struct StreamWaiters {
    /// Of whoever closes; nil once that is answered, and after a restart.
    var closer: (stamp: ProducerStamp?, bearer: StreamBearer, request: FileStreamService.Request)?
    /// Asked meanwhile, in order.
    var requests: [FileStreamService.Request] = []
    /// It was handed to whoever commits.
    var isAsked = false
    /// When it is to be asked what became of it.
    var settleAt: ContinuousClock.Instant?

    /// More are refused: each may have a body.
    static let most = 100
}

extension FileStreamService.Request {
    /// What it is answered depends on whether the stream is closed.
    fileprivate var dependsOnCloses: Bool {
        switch request {
        case .create, .append, .cancel, .delete, .abort: true
        case .hold, .release, .touch: false
        }
    }
}
