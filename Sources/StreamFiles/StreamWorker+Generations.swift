import Streams

/// Generations of a name: the next takes the place of one that has ended (`create`), and whoever reads that is shown the rest of it.
extension StreamWorker {
    /// Makes a stream, or finds the one that is there, or has it give way to the next generation.
    func create(
        _ asked: FileStreamService.Request, _ configuration: StreamConfiguration, _ body: [UInt8], closes: Bool,
        isNext: Bool, at now: Int64
    ) {
        // Whether the one before has ended counts as soon as that is written.
        if isNext, streams[asked.name]?.isTouched == true { commit() }
        var before: KeptStream?
        if let stream = streams[asked.name] {
            before = isNext && stream.log.ending != nil ? stream : nil
            guard before != nil || isExpired(stream, at: now) else {
                touch(stream)
                let isSame = stream.log.configuration.isAlike(configuration) && (stream.log.ending != nil) == closes
                return stream.answer(isSame ? .existed(stream.snapshot) : refused(.otherConfiguration), asked)
            }
            commit()
            if sharing != nil {
                _ = removeShared([stream], isSuperseded: before != nil)
            } else if before == nil {
                remove(stream)
            }
            // Another hub has it still, or nobody knows.
            guard before != nil && sharing == nil || streams[asked.name] == nil else {
                return asked.answer(refused(.unavailable))
            }
        }
        if sharing == nil, let before { leave(before) }
        let bytes: [UInt8]
        do throws(StreamRefusal) {
            bytes = try configuration.content.stored(body, isFirst: true)
            let limit = bound(of: asked.name, configuration).bytes
            guard bytes.count <= limit else { throw .streamTooLarge(limit: limit) }
            try makeRoom(for: .init(count: 1, bytes: bytes.count), of: configuration.owner)
        } catch {
            if sharing == nil, let before { enter(before) }
            return asked.answer(refused(error))
        }
        let id = StreamID(random.next())
        // Of two files of one name the later one counts (`restore`).
        let createdAt = max(now, (before?.log.createdAt ?? .min) &+ 1)
        let created = StreamRecord.created(id, asked.name, configuration, at: createdAt)
        guard let log = StreamLog(created) else { return asked.answer(.refused(.unavailable)) }
        let stream = KeptStream(
            log, folder.file(of: id), StreamLease(configuration, at: Self.monotonic), at: now)
        if sharing == nil { stream.superseded = before }
        stream.write(created)
        if !bytes.isEmpty || closes {
            let ending = closes ? StreamEnding(.complete, at: now) : nil
            stream.write(.appended(bytes, ending, producer: nil, sequence: nil))
        }
        enter(stream)
        touch(stream)
        stream.answer(.created(stream.snapshot), asked)
    }

    /// Which of two files of one name counts: the hub may have been killed while the name was opened for its next turn.
    enum Precedence { case first, second, unknown }

    /// - Parameter log: of the second, which was read just now.
    func precedence(of other: KeptStream, over log: StreamLog) -> Precedence {
        if other.log.ending != nil, other.log.createdAt < log.createdAt { return .second }
        return log.ending != nil && log.createdAt < other.log.createdAt ? .first : .unknown
    }

    func putAside(_ file: StreamFolder.File) {
        setup.logger.warning("A file of streams.directory holds no stream, and was put aside as .damaged.")
        folder.setAside(file)
    }

    /// Of streams that hubs share: the next generation follows.
    func supersede(_ stream: KeptStream) {
        forget(stream)
        retire(stream.buffer)
    }

    /// The next generation has its name: its readers are shown the rest of it, which counts for nobody's share. So there is one of each
    /// name, and the readers of the one before that end.
    func retire(_ buffer: StreamBuffer) {
        if let other = retired[buffer.name]?.buffer, other !== buffer { tell(other.setGone(), of: other) }
        retired[buffer.name] = RetiredBuffer(buffer: buffer)
    }
}

/// A generation that gave way to another. Those who read it hold it.
struct RetiredBuffer {
    weak var buffer: StreamBuffer?
}
