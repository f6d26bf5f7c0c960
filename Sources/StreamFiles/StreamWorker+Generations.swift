import Streams

/// Generations of a name: the next one replaces one that has ended, whose readers are shown the rest of it.
extension StreamWorker {
    /// Creates a stream, returns the existing one, or replaces that with the next generation.
    func createStream(
        _ asked: FileStreamService.Request, _ configuration: StreamConfiguration, _ body: [UInt8], closes: Bool,
        isNext: Bool, at now: Int64
    ) {
        // An end of the previous generation counts once it is written.
        if isNext, streams[asked.name]?.isTouched == true { commitBatches() }
        var before: KeptStream?
        if let stream = streams[asked.name] {
            before = isNext && stream.log.ending != nil ? stream : nil
            guard before != nil || isExpired(stream, at: now) else {
                addToBatch(stream)
                let isSame = stream.log.configuration.isAlike(configuration) && (stream.log.ending != nil) == closes
                return stream.stageAnswer(
                    isSame ? .existed(stream.snapshot) : refusalAnswer(.otherConfiguration), asked)
            }
            commitBatches()
            if sharing != nil {
                _ = removeShared([stream], isSuperseded: before != nil)
            } else if before == nil {
                removeStream(stream)
            }
            // Another hub still has it, or the outcome is unknown.
            guard before != nil && sharing == nil || streams[asked.name] == nil else {
                return asked.answer(refusalAnswer(.unavailable))
            }
        }
        if sharing == nil, let before { unlistStream(before) }
        let bytes: [UInt8]
        do throws(StreamRefusal) {
            bytes = try configuration.content.storedBytes(body, isFirst: true)
            let limit = bound(of: asked.name, configuration).bytes
            guard bytes.count <= limit else { throw .streamTooLarge(limit: limit) }
            try makeRoom(for: .init(count: 1, bytes: bytes.count), of: configuration.owner)
        } catch {
            if sharing == nil, let before { listStream(before) }
            return asked.answer(refusalAnswer(error))
        }
        let id = StreamID(random.next())
        // The later of two files with one name counts (`precedence`).
        let createdAt = max(now, (before?.log.createdAt ?? .min) &+ 1)
        let created = StreamRecord.created(id, asked.name, configuration, at: createdAt)
        guard let log = StreamLog(created) else { return asked.answer(.refused(.unavailable)) }
        let stream = KeptStream(
            log, folder.file(of: id), StreamLease(configuration, at: Self.monotonic), at: now)
        if sharing == nil { stream.superseded = before }
        stream.stageRecord(created)
        if !bytes.isEmpty || closes {
            let ending = closes ? StreamEnding(.complete, at: now) : nil
            stream.stageRecord(.appended(bytes, ending, producer: nil, sequence: nil))
        }
        listStream(stream)
        addToBatch(stream)
        stream.stageAnswer(.created(stream.snapshot), asked)
    }

    /// Which of two files with one name counts: the hub may have been killed while the name was opened for its next turn.
    enum Precedence { case first, second, unknown }

    /// - Parameter log: the second file's, which was just read.
    func precedence(of other: KeptStream, over log: StreamLog) -> Precedence {
        if other.log.ending != nil, other.log.createdAt < log.createdAt { return .second }
        return log.ending != nil && log.createdAt < other.log.createdAt ? .first : .unknown
    }

    func putAside(_ file: StreamFolder.File) {
        setup.logger.warning("A file of streams.directory holds no stream, and was put aside as .damaged.")
        folder.setAside(file)
    }

    /// For shared streams: the next generation follows.
    func supersedeStream(_ stream: KeptStream) {
        forgetStream(stream)
        retireBuffer(stream.buffer)
    }

    /// The next generation has taken the name: readers of this one are shown the rest, which counts for no owner. Each
    /// name has one such generation; readers of an earlier one end.
    func retireBuffer(_ buffer: StreamBuffer) {
        if let other = retired[buffer.name]?.buffer, other !== buffer { notifyLoops(other.setGone(), of: other) }
        retired[buffer.name] = RetiredBuffer(buffer: buffer)
    }
}

/// A generation that was replaced by another. Only its readers keep it alive.
struct RetiredBuffer {
    weak var buffer: StreamBuffer?
}
