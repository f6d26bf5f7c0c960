import Glibc
import Logging
import Streams
import Workers

/// Performs requests about streams, in order, and ends streams that are abandoned or expired. Confined to the service's thread.
final class StreamWorker {
    let setup: FileStreamService.Setup
    let index: StreamIndex
    private let published: Published<StreamStatistics>
    let folder: StreamFolder
    var streams: [StreamName: KeptStream] = [:]
    /// Includes what is decided but not yet written.
    var shares = StreamShares()
    var figures = StreamStatistics()
    /// The streams shared between hubs; nil for a single hub (`StreamSharing`).
    var sharing: StreamSharing?
    /// When the operator's page last asked for growth (`StreamWorker+Inspection`).
    var surveyedAt: ContinuousClock.Instant?
    private var sink: (any StreamSink)?
    /// Receives the outcomes of commits.
    private(set) var mailbox: WorkerMailbox<FileStreamService.Mail>?
    /// The streams of the current batch, in the order of the requests.
    private var touched: [KeptStream] = []
    var random = SystemRandomNumberGenerator()
    /// Generations replaced by others, as long as they are read.
    var retired: [StreamName: RetiredBuffer] = [:]
    var sweepAt = ContinuousClock.now
    var hasWarned = false

    /// How many times in a row other hubs may be faster.
    private static let mostRounds = 50

    init(
        _ setup: FileStreamService.Setup, _ index: StreamIndex, _ published: Published<StreamStatistics>
    ) throws(StreamFolder.Failure) {
        self.setup = setup
        self.index = index
        self.published = published
        folder = try StreamFolder(setup.directory)
        for (file, bytes) in try folder.readFiles() { restoreStream(file, bytes) }
        sharing = setup.shared.map { StreamSharing($0, setup.logger) }
        figures.shared = setup.shared.map { _ in .init() }
        publishStatistics()
    }

    /// Milliseconds since 1970.
    static var unix: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }

    /// Monotonic milliseconds.
    static var monotonic: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }

    // MARK: The restart

    private func restoreStream(_ file: StreamFolder.File, _ bytes: [UInt8]) {
        let (read, end) = RecordFrame.records(in: bytes)
        var (file, records) = (file, read)
        guard let first = records.first, var log = StreamLog(first) else { return putAside(file) }
        if let other = streams[log.name] {
            var whole = log
            for record in records.dropFirst() { whole.applyRecord(record) }
            switch precedence(of: other, over: whole) {
            case .first: return folder.removeFile(file)
            case .second: forgetStream(other)
            case .unknown: return putAside(file)
            }
        }
        if end < bytes.count, RecordFrame.isTorn(bytes, at: end) {
            folder.cutFile(file, at: end)
        } else if end < bytes.count {
            guard let rest = putDamagedAside(file, bytes, upTo: end, log) else { return }
            file = rest
            records.append(.ended(StreamEnding(.aborted, at: Self.unix)))
        }
        for record in records.dropFirst() { log.applyRecord(record) }
        var lease = StreamLease(log.configuration, at: Self.monotonic)
        // With several hubs, another one may have heard the producer all along.
        if setup.shared == nil { lease.restart(hasProducer: log.hasProducer, at: Self.monotonic) }
        guard let fresh = StreamLog(first) else { return }
        let stream = KeptStream(fresh, file, lease, at: Self.unix)
        stream.restoreRecords(records.dropFirst())
        if stream.log.closing != nil { stream.waiting = StreamWaiters(isAsked: true, settleAt: .now) }
        listStream(stream)
        _ = index.addBuffer(stream.buffer)
    }

    /// The intact part of a damaged file is still served, and the stream ends there: what readers saw beyond that point
    /// never becomes something else, and a reader that asks for it is told that there is no such place. With several
    /// hubs, the others and Redis have all of it.
    ///
    /// - Returns: the file with the intact part and the end; nil if there is none.
    private func putDamagedAside(
        _ file: StreamFolder.File, _ bytes: [UInt8], upTo end: Int, _ log: StreamLog
    ) -> StreamFolder.File? {
        let path = folder.setAside(file)
        var kept = Array(bytes[..<end])
        RecordFrame.append(.ended(StreamEnding(.aborted, at: Self.unix)), to: &kept)
        let rest = folder.file(of: log.id)
        let isKept = setup.shared == nil && folder.append(kept, to: rest)
        setup.logger.warning(
            """
            The file of the stream \(log.name.text) is damaged behind its first \(end) bytes, and was put aside as \(path): \
            \(isKept ? "the stream has ended there." : setup.shared == nil ? "the stream is gone." : "it is read from Redis.")
            """)
        return isKept ? rest : nil
    }

    // MARK: Turns

    func runUntilStopped(_ mailbox: WorkerMailbox<FileStreamService.Mail>, _ sink: any StreamSink) {
        self.sink = sink
        self.mailbox = mailbox
        while true {
            if sharing == nil {
                mailbox.wait(until: streams.isEmpty ? nil : sweepAt)
            } else {
                waitForWork(until: sweepAt)
            }
            let mail = mailbox.takeMail { mail in
                defer {
                    mail.requests = []
                    mail.outcomes = []
                    mail.questions = []
                    mail.bytes = 0
                }
                return mail
            }
            for outcome in mail.outcomes { receiveOutcome(outcome.outcome, of: outcome.key, outcome.name) }
            var bytes = 0
            for request in mail.requests {
                // Everything written at once must fit into one call.
                if sharing != nil, bytes > 0, bytes + request.bytes > StreamSharing.mostBytes {
                    commitBatches()
                    bytes = 0
                }
                bytes += request.bytes
                performRequest(request)
            }
            commitBatches()
            for question in mail.questions { question(self) }
            if sweepAt <= .now { sweepStreams() }
            if mail.isStopping { return }
        }
    }

    /// Writes decided changes, answers their requests and notifies loops.
    func commitBatches() {
        // Requests that waited for a close continue once it is committed, and touch streams again; so do requests that
        // another hub overtook.
        var rounds = 0
        while !touched.isEmpty || sharing?.missing.isEmpty == false {
            let batch = touched
            touched.removeAll(keepingCapacity: true)
            rounds += 1
            if sharing == nil { commitBatch(batch) } else { commitShared(batch, isLast: rounds > Self.mostRounds) }
        }
        publishStatistics()
    }

    private func commitBatch(_ batch: [KeptStream]) {
        for stream in batch where stream.isTouched {
            let (added, before) = (stream.added, stream.count.appends)
            let ending = stream.ends
            let loops = stream.commitBatch(to: folder, isSynced: isSynced(stream))
            figures.writes += 1
            if let loops {
                countWrite(stream, bytes: added, appends: stream.count.appends - before, ending: ending, telling: loops)
            } else {
                writeFailed(stream, added)
            }
            moveWindow(of: stream)
            stream.sendAnswers(isWritten: loops != nil)
            continueClose(with: stream)
        }
    }

    /// An end is waiting for its row to be committed.
    var hasWaitingCloses: Bool { streams.values.contains { $0.waiting != nil } }

    /// Whether the batch must be on the disk, not only in the kernel's hands.
    func isSynced(_ stream: KeptStream) -> Bool {
        setup.sync == .always || stream.waiting != nil || setup.sync == .close && stream.log.ending != nil
    }

    /// Counts a write and shows it.
    func countWrite(
        _ stream: KeptStream, bytes: Int, appends: Int, ending: StreamEnding.Reason?, telling loops: [Int]
    ) {
        figures.appendedBytes += bytes
        figures.appends += appends
        if let ending { figures.ended[ending, default: 0] += 1 }
        // An unwritten stream is not found; until it is written, the generation before it is.
        notifyLoops(
            index[stream.log.name] !== stream.buffer ? index.addBuffer(stream.buffer) : loops, of: stream.buffer)
        if let before = stream.superseded {
            stream.superseded = nil
            folder.removeFile(before.file)
            retireBuffer(before.buffer)
        }
    }

    /// Adds the stream to the current batch, for a write or an answer.
    func addToBatch(_ stream: KeptStream) { touched.append(stream) }

    private func writeFailed(_ stream: KeptStream, _ added: Int) {
        growShare(stream, by: -added)
        figures.failures += 1
        figures.refused[.disk, default: 0] += stream.answerCount
        if !hasWarned {
            setup.logger.error(
                "Streams cannot be written to \(setup.directory) (\(String(cString: strerror(errno)))): appends are refused until they can."
            )
            hasWarned = true
        }
        // A stream that was being created is dropped.
        guard stream.file.length == 0 else { return }
        forgetStream(stream)
        if let before = stream.superseded { listStream(before) }
    }

    func notifyLoops(_ loops: [Int], of buffer: StreamBuffer) {
        for loop in loops { sink?.streamChanged(buffer, for: loop) }
    }

    private func publishStatistics() {
        figures.streams = streams.count
        // No sweep counts them while there are none.
        if streams.isEmpty { (figures.open, figures.stalled, figures.connectedProducers) = (0, 0, 0) }
        figures.bytes = shares.all.bytes
        published.value = figures
    }

    // MARK: Requests

    func refusalAnswer(_ refusal: StreamRefusal) -> StreamAnswer {
        figures.refused[refusal.reason, default: 0] += 1
        return .refused(refusal)
    }

    func performRequest(_ asked: FileStreamService.Request) {
        guard !queueIfClosing(asked) else { return }
        let (now, monotonic) = (Self.unix, Self.monotonic)
        if case .create(let configuration, let body, let closes, let isNext) = asked.request {
            return createStream(asked, configuration, body, closes: closes, isNext: isNext, at: now)
        }
        guard let stream = streams[asked.name], !isExpired(stream, at: now) else {
            guard sharing != nil else { return asked.answer(refusalAnswer(.notFound)) }
            return lookElsewhere(asked)
        }
        addToBatch(stream)
        switch asked.request {
        case .create: break
        case .append(let append): self.append(append, to: stream, asked, at: now, monotonic)
        case .cancel(let generation?, _) where generation != stream.log.id,
            .delete(let generation?) where generation != stream.log.id,
            .abort(let generation) where generation != stream.log.id:
            stream.stageAnswer(refusalAnswer(.otherGeneration(stream.snapshot)), asked)
        case .cancel(_, let bearer): cancelStream(stream, by: bearer, asked, at: now)
        case .abort:
            if stream.log.ending == nil { abortStream(stream, at: now) }
            stream.stageAnswer(.done(stream.snapshot), asked)
        case .delete:
            commitBatches()
            let isDone = sharing == nil || removeShared(asked.name)
            if isDone, let stream = streams[asked.name] { removeStream(stream) }
            asked.answer(isDone ? .done(nil) : refusalAnswer(.unavailable))
        case .hold(let hold):
            if !stream.log.wasHeld, stream.log.ending == nil { stream.stageRecord(.held) }
            if stream.lease.addHold(hold, at: monotonic) != nil { tellOthers(.heard, of: stream) }
            stream.stageAnswer(.done(stream.snapshot), asked)
        case .release(let hold, let isFault):
            if isFault {
                if stream.lease.releaseHold(hold, at: monotonic) != nil { tellOthers(.broken, of: stream) }
            } else {
                stream.lease.finishHold(hold, at: monotonic)
            }
            stream.stageAnswer(.done(stream.snapshot), asked)
        case .touch:
            noteUse(of: stream, at: now)
            // For shared streams, the answer confirms that nothing is missing here.
            if sharing != nil {
                stream.stageAnswer(.done(stream.snapshot), asked)
            } else {
                asked.answer(.done(stream.snapshot))
            }
        }
    }

    private func append(
        _ append: StreamAppend, to stream: KeptStream, _ asked: FileStreamService.Request, at now: Int64,
        _ monotonic: Int64
    ) {
        guard makeWindow(for: append.body.count, in: stream) else {
            return stream.stageAnswer(refusalAnswer(.noRoom), asked)
        }
        let bound = bound(of: stream)
        switch stream.log.decideAppend(append, limit: bound.bytes, isWindow: bound.keepsNewest, at: now) {
        case .refused(let refusal):
            stream.stageAnswer(refusalAnswer(refusal), asked)
        case .repeated(let stamp):
            _ = stream.lease.producerHeard(at: monotonic)
            tellOthers(.heard, of: stream)
            stream.stageAnswer(.appended(stream.snapshot, isRepeated: true, stamp: stamp), asked)
        case .write(let record, let stamp):
            guard case .appended(let bytes, _, _, _) = record else { return }
            do throws(StreamRefusal) {
                try makeRoom(for: .init(bytes: bytes.count), of: stream.log.configuration.owner)
            } catch {
                return stream.stageAnswer(refusalAnswer(error), asked)
            }
            stream.usedAt = now
            if bound.age != nil { stream.markTime(at: monotonic) }
            if beginClose(of: stream, record, stamp: stamp, bearer: append.bearer, asked) { return }
            stream.stageRecord(record)
            stream.countAppend(at: now)
            stream.trouble = nil
            growShare(stream, by: bytes.count)
            _ = stream.lease.producerHeard(at: monotonic)
            stream.stageAnswer(.appended(stream.snapshot, isRepeated: false, stamp: stamp), asked)
        }
    }

    func endStream(_ stream: KeptStream, _ reason: StreamEnding.Reason, at now: Int64) {
        stream.stageRecord(.ended(StreamEnding(reason, at: now)))
    }

    func bound(of name: StreamName, _ configuration: StreamConfiguration) -> StreamBound {
        setup.limits.bounds.first(for: name)
            ?? StreamBound(
                bytes: configuration.content == .binary ? setup.limits.binaryBytes : setup.limits.bytes)
    }

    func bound(of stream: KeptStream) -> StreamBound {
        if let bound = stream.bound { return bound }
        let bound = bound(of: stream.log.name, stream.log.configuration)
        stream.bound = bound
        return bound
    }

    // MARK: Room

    /// Only here: a shared stream is removed in Redis before (`removeShared`).
    func removeStream(_ stream: KeptStream) {
        // Another hub removed it while its end was being committed.
        let waiting = stream.waiting
        stream.waiting = nil
        for request in (waiting?.closer?.request.map { [$0] } ?? []) + (waiting?.requests ?? []) {
            request.answer(refusalAnswer(.notFound))
        }
        forgetStream(stream)
        notifyLoops(stream.buffer.setGone(), of: stream.buffer)
    }

    func forgetStream(_ stream: KeptStream) {
        folder.removeFile(stream.file)
        unlistStream(stream)
        index.removeBuffer(stream.buffer)
    }

    func listStream(_ stream: KeptStream) {
        streams[stream.log.name] = stream
        shares.addStream(stream)
    }

    /// Called as soon as a change is decided or taken back.
    func growShare(_ stream: KeptStream, by bytes: Int) {
        if streams[stream.log.name] === stream { shares.growStream(stream, by: bytes) }
    }

    func unlistStream(_ stream: KeptStream) {
        guard streams[stream.log.name] === stream else { return }
        streams[stream.log.name] = nil
        shares.removeStream(stream)
    }
}
