import Glibc
import Logging
import Streams
import Workers

/// Performs what is asked of streams, in order, and ends what nobody writes or wants any more. On the service's thread.
final class StreamWorker {
    let setup: FileStreamService.Setup
    private let index: StreamIndex
    private let published: Published<StreamStatistics>
    private let folder: StreamFolder
    private(set) var streams: [StreamName: KeptStream] = [:]
    /// Of all streams, what is decided and not written included.
    private(set) var totalBytes = 0
    private(set) var figures = StreamStatistics()
    /// When the operator's page asked last what grows (`StreamWorker+Inspection`).
    var surveyedAt: ContinuousClock.Instant?
    private var sink: (any StreamSink)?
    /// Outcomes of commits go there.
    private(set) var mailbox: WorkerMailbox<FileStreamService.Mail>?
    /// In the batch in hand, in the order in which they were asked for.
    private var touched: [KeptStream] = []
    private var random = SystemRandomNumberGenerator()
    private var sweepAt = ContinuousClock.now
    private var hasWarned = false

    private static let sweepInterval = Duration.milliseconds(500)

    init(
        _ setup: FileStreamService.Setup, _ index: StreamIndex, _ published: Published<StreamStatistics>
    ) throws(StreamFolder.Failure) {
        self.setup = setup
        self.index = index
        self.published = published
        folder = try StreamFolder(setup.directory)
        for (file, bytes) in try folder.files() { restore(file, bytes) }
        publish()
    }

    /// Milliseconds since 1970.
    static var unix: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }

    /// Milliseconds that grow.
    private static var monotonic: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }

    // MARK: The restart

    private func restore(_ file: StreamFolder.File, _ bytes: [UInt8]) {
        let (records, end) = RecordFrame.records(in: bytes)
        guard let first = records.first, var log = StreamLog(first), streams[log.name] == nil else {
            setup.logger.warning("A file of streams.directory holds no stream, and was put aside as .damaged.")
            folder.setAside(file)
            return
        }
        if end < bytes.count { folder.cut(file, at: end) }
        for record in records.dropFirst() { log.apply(record) }
        var lease = StreamLease(log.configuration, at: Self.monotonic)
        lease.restart(hasProducer: log.hasProducer, at: Self.monotonic)
        guard let fresh = StreamLog(first) else { return }
        let stream = KeptStream(fresh, file, lease, at: Self.unix)
        stream.restore(records.dropFirst())
        if stream.log.closing != nil { stream.waiting = StreamWaiters(isAsked: true, settleAt: .now) }
        streams[log.name] = stream
        _ = index.add(stream.buffer)
        totalBytes += log.end
    }

    // MARK: Turns

    func run(_ mailbox: WorkerMailbox<FileStreamService.Mail>, _ sink: any StreamSink) {
        self.sink = sink
        self.mailbox = mailbox
        while true {
            mailbox.wait(until: streams.isEmpty ? nil : sweepAt)
            let mail = mailbox.take { mail in
                defer {
                    mail.requests = []
                    mail.outcomes = []
                    mail.questions = []
                    mail.bytes = 0
                }
                return mail
            }
            for outcome in mail.outcomes { take(outcome.outcome, of: outcome.key, outcome.name) }
            for request in mail.requests { perform(request) }
            commit()
            for question in mail.questions { question(self) }
            if sweepAt <= .now { sweep() }
            if mail.isStopping { return }
        }
    }

    /// Writes what was decided, answers whoever asked for it and tells loops.
    func commit() {
        // Whoever waited for a close that is out goes on with it, and touches streams anew.
        while !touched.isEmpty {
            let batch = touched
            touched.removeAll(keepingCapacity: true)
            commit(batch)
        }
        publish()
    }

    private func commit(_ batch: [KeptStream]) {
        for stream in batch where stream.isTouched {
            let (added, before) = (stream.added, stream.count.appends)
            let isSynced =
                setup.sync == .always || stream.waiting != nil || setup.sync == .close && stream.log.ending != nil
            let loops = stream.commit(to: folder, isSynced: isSynced)
            figures.writes += 1
            if let loops {
                figures.appendedBytes += added
                figures.appends += stream.count.appends - before
                // Nobody finds a stream that is not written.
                tell(index[stream.log.name] == nil ? index.add(stream.buffer) : loops, of: stream.buffer)
            } else {
                failed(stream, added)
            }
            stream.say(isWritten: loops != nil)
            goOn(with: stream)
        }
    }

    /// The batch in hand has to write the stream, or to answer somebody about it.
    func touch(_ stream: KeptStream) { touched.append(stream) }

    /// Streams grow by so many bytes, as soon as they are written.
    func count(bytes: Int) { totalBytes += bytes }

    /// A stream has ended like that.
    func count(_ ending: StreamEnding.Reason) { figures.ended[ending, default: 0] += 1 }

    private func failed(_ stream: KeptStream, _ added: Int) {
        totalBytes -= added
        figures.failures += 1
        figures.refused[.disk, default: 0] += stream.answerCount
        if !hasWarned {
            setup.logger.error(
                "Streams cannot be written to \(setup.directory) (\(String(cString: strerror(errno)))): appends are refused until they can."
            )
            hasWarned = true
        }
        // One that was being made is none.
        if stream.file.length == 0 { forget(stream) }
    }

    private func tell(_ loops: [Int], of buffer: StreamBuffer) {
        for loop in loops { sink?.streamChanged(buffer, for: loop) }
    }

    private func publish() {
        figures.streams = streams.count
        // Nobody counts them anew while there are none.
        if streams.isEmpty { (figures.open, figures.stalled, figures.connectedProducers) = (0, 0, 0) }
        figures.bytes = totalBytes
        published.value = figures
    }

    // MARK: Requests

    func refused(_ refusal: StreamRefusal) -> StreamAnswer {
        figures.refused[refusal.reason, default: 0] += 1
        return .refused(refusal)
    }

    func perform(_ asked: FileStreamService.Request) {
        guard !waits(asked) else { return }
        let (now, monotonic) = (Self.unix, Self.monotonic)
        if case .create(let configuration, let body, let closes) = asked.request {
            return create(asked, configuration, body, closes: closes, at: now)
        }
        guard let stream = streams[asked.name], !isExpired(stream, at: now) else {
            return asked.answer(refused(.notFound))
        }
        touch(stream)
        switch asked.request {
        case .create: break
        case .append(let append): self.append(append, to: stream, asked, at: now, monotonic)
        case .cancel:
            if stream.log.ending == nil { end(stream, .cancelled, at: now) }
            stream.answer(.done(stream.snapshot), asked.answer)
        case .delete:
            commit()
            remove(stream)
            asked.answer(.done(nil))
        case .hold(let hold):
            if !stream.log.wasHeld, stream.log.ending == nil { stream.write(.held) }
            _ = stream.lease.hold(hold, at: monotonic)
            stream.answer(.done(stream.snapshot), asked.answer)
        case .release(let hold, let isFault):
            if isFault {
                _ = stream.lease.release(hold, at: monotonic)
            } else {
                stream.lease.finish(hold, at: monotonic)
            }
            stream.answer(.done(stream.snapshot), asked.answer)
        case .touch:
            stream.usedAt = now
            asked.answer(.done(stream.snapshot))
        }
    }

    private func create(
        _ asked: FileStreamService.Request, _ configuration: StreamConfiguration, _ body: [UInt8], closes: Bool,
        at now: Int64
    ) {
        if let stream = streams[asked.name] {
            guard isExpired(stream, at: now) else {
                touch(stream)
                let isSame = stream.log.configuration.isAlike(configuration) && (stream.log.ending != nil) == closes
                return stream.answer(isSame ? .existed(stream.snapshot) : refused(.otherConfiguration), asked.answer)
            }
            commit()
            remove(stream)
        }
        let bytes: [UInt8]
        do throws(StreamRefusal) {
            bytes = try configuration.content.stored(body, isFirst: true)
            try makeRoom(for: bytes.count, limit: limit(of: configuration), isNew: true)
        } catch {
            return asked.answer(refused(error))
        }
        let id = StreamID(random.next())
        let created = StreamRecord.created(id, asked.name, configuration, at: now)
        guard let log = StreamLog(created) else { return asked.answer(.refused(.unavailable)) }
        let stream = KeptStream(
            log, folder.file(of: id), StreamLease(configuration, at: Self.monotonic), at: now)
        stream.write(created)
        if !bytes.isEmpty || closes {
            let ending = closes ? StreamEnding(.complete, at: now) : nil
            stream.write(.appended(bytes, ending, producer: nil, sequence: nil))
            count(bytes: bytes.count)
            if closes { count(.complete) }
        }
        streams[asked.name] = stream
        touch(stream)
        stream.answer(.created(stream.snapshot), asked.answer)
    }

    private func append(
        _ append: StreamAppend, to stream: KeptStream, _ asked: FileStreamService.Request, at now: Int64,
        _ monotonic: Int64
    ) {
        switch stream.log.decide(append, limit: limit(of: stream.log.configuration), at: now) {
        case .refused(let refusal):
            stream.answer(refused(refusal), asked.answer)
        case .repeated(let stamp):
            _ = stream.lease.heard(at: monotonic)
            stream.answer(.appended(stream.snapshot, isRepeated: true, stamp: stamp), asked.answer)
        case .write(let record, let stamp):
            guard case .appended(let bytes, let ending, _, _) = record else { return }
            do throws(StreamRefusal) {
                try makeRoom(for: bytes.count, limit: .max, isNew: false)
            } catch {
                return stream.answer(refused(error), asked.answer)
            }
            stream.usedAt = now
            if beginClose(of: stream, record, stamp: stamp, bearer: append.bearer, asked) { return }
            stream.write(record)
            stream.countAppend(at: now)
            count(bytes: bytes.count)
            if let ending { count(ending.reason) }
            _ = stream.lease.heard(at: monotonic)
            stream.answer(.appended(stream.snapshot, isRepeated: false, stamp: stamp), asked.answer)
        }
    }

    private func end(_ stream: KeptStream, _ reason: StreamEnding.Reason, at now: Int64) {
        stream.write(.ended(StreamEnding(reason, at: now)))
        count(reason)
    }

    func limit(of configuration: StreamConfiguration) -> Int {
        configuration.content == .binary ? setup.limits.binaryBytes : setup.limits.bytes
    }

    // MARK: Room

    /// Lets streams that ended go, those that ended first, until there is room, and some more, so that looking for them is rare.
    /// Those that are open stay.
    private func makeRoom(for bytes: Int, limit: Int, isNew: Bool) throws(StreamRefusal) {
        guard bytes <= limit else { throw .streamTooLarge(limit: limit) }
        let most = setup.limits
        func fits() -> Bool { totalBytes + bytes <= most.totalBytes && (!isNew || streams.count < most.count) }
        guard !fits() else { return }
        func isRoomy() -> Bool {
            totalBytes + bytes <= most.totalBytes - most.totalBytes / 16
                && (!isNew || streams.count < most.count - most.count / 16)
        }
        let ended = streams.values.filter { $0.log.ending != nil && !$0.isTouched && $0.waiting == nil }
        for stream in ended.sorted(by: { ($0.log.ending?.at ?? 0) < ($1.log.ending?.at ?? 0) }) {
            remove(stream)
            figures.evicted += 1
            if isRoomy() { return }
        }
        guard !fits() else { return }
        throw .tooMuch(limit: streams.count >= most.count && isNew ? "streams.count" : "streams.total_bytes")
    }

    private func remove(_ stream: KeptStream) {
        totalBytes -= stream.log.end
        forget(stream)
        tell(stream.buffer.setGone(), of: stream.buffer)
    }

    private func forget(_ stream: KeptStream) {
        folder.remove(stream.file)
        streams[stream.log.name] = nil
        index.remove(stream.log.name)
    }

    // MARK: Time

    private func isExpired(_ stream: KeptStream, at now: Int64) -> Bool {
        switch stream.log.configuration.lifetime {
        case .unlimited: false
        case .idle(let seconds): now - stream.usedAt >= Int64(seconds) * 1000
        case .until(let time): now >= time
        }
    }

    private func sweep() {
        sweepAt = .now + Self.sweepInterval
        hasWarned = false
        let (now, monotonic) = (Self.unix, Self.monotonic)
        (figures.open, figures.stalled, figures.connectedProducers) = (0, 0, 0)
        for stream in Array(streams.values) {
            // Whoever watches, reads.
            if stream.buffer.isWatched { stream.usedAt = now }
            if stream.waiting != nil {
                figures.open += 1
                askWhatBecame(of: stream)
            } else if isExpired(stream, at: now) {
                remove(stream)
            } else if let ending = stream.log.ending {
                if case .unlimited = stream.log.configuration.lifetime, now - ending.at >= setup.limits.keptAfterEnd {
                    remove(stream)
                }
            } else {
                figures.open += 1
                look(after: stream, at: now, monotonic)
                if stream.lease.isStalled { figures.stalled += 1 }
                figures.connectedProducers += stream.lease.connections.count
            }
        }
        commit()
    }

    private func look(after stream: KeptStream, at now: Int64, _ monotonic: Int64) {
        switch stream.lease.advance(to: monotonic, setup.lease, hasProducer: stream.log.hasProducer) {
        case .aborted:
            touch(stream)
            end(stream, .aborted, at: now)
        case .stalled, .open: tell(stream.show(), of: stream.buffer)
        case nil: break
        }
    }
}
