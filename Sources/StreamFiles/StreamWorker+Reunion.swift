import Redis
import Streams

/// Joins the streams shared between hubs: at the start, when Redis is back, and after something was missed.
///
/// Within an epoch, Redis is right: everything a hub has was there, so the hub copies Redis' state. In a new epoch, Redis may
/// have lost something: hubs write back what it lacks, and a stream that two hubs wrote without knowing of each other is deleted.
extension StreamWorker {
    /// Opens the streams and looks everything up if due, and checks twice a second that nothing was missed.
    func goOnSharing() {
        guard let log = sharing?.log, log.isWhole, let due = sharing?.nextBeat, due <= .now || log.isNew else { return }
        sharing?.nextBeat = .now + StreamSharing.beatInterval
        if sharing?.isSynced == true, log.epoch != nil {
            guard let count = log.settledCount() else { return }
            receiveNews()
            guard count > sharing?.count ?? 0 else { return }
        }
        sharing?.isSynced = false
        reuniteStreams(log)
    }

    private func reuniteStreams(_ log: SharedStreamLog) {
        let known = folder.epoch
        guard let opening = log.openStreams(least: max(UInt64(max(0, Self.unix)), (known ?? 0) + 1)),
            let index = log.readIndex()
        else { return }
        sharing?.count = opening.count
        let isSame = opening.epoch == known
        sharing?.damaged = []
        for (name, place) in index {
            guard isSame ? copyFromRedis(name, at: place) : uniteStream(name, at: place) else {
                // A damaged stream does not hold up the others.
                guard sharing?.damaged.contains(place.id) == true else { return }
                continue
            }
        }
        for stream in Array(streams.values) where index[stream.log.name] == nil {
            if isSame {
                removeStream(stream)
            } else {
                guard writeBack(stream, from: 0) else { return }
            }
        }
        guard log.epoch == opening.epoch else { return }
        if !isSame { folder.store(epoch: opening.epoch) }
        let now = Self.monotonic
        for stream in streams.values { stream.lease.restartClock(at: now) }
        sharing?.isSynced = true
        sharing?.settlesAt = .now + opening.settles
    }

    /// Merges the stream here with the one in Redis, either of which may lack something.
    ///
    /// - Returns: false if Redis cannot be reached.
    private func uniteStream(_ name: StreamName, at place: SharedStreamPlace?) -> Bool {
        guard let place else { return copyFromRedis(name, at: nil) }
        if sharing?.wasRemoved(place.id) == true { return removeThere(name, place) }
        guard let stream = streams[name], stream.length > 0 else { return copyFromRedis(name, at: place) }
        guard stream.log.id.number == place.id else { return chooseNewer(of: stream, place) }
        let common = min(stream.length, place.length)
        let compared = max(0, common - Self.comparedBytes)..<common
        guard let theirs = sharing?.log.readLog(place.id, compared) else { return reportUnreadable(name, place) }
        guard let own = folder.readFile(stream.file, compared) else {
            // A write to the disk failed: Redis has the better copy.
            removeStream(stream)
            return copyFromRedis(name, at: place)
        }
        guard own == theirs else { return dropForked(stream, place) }
        return stream.length > place.length ? writeBack(stream, from: place.length) : copyFromRedis(name, at: place)
    }

    /// The stream created later has replaced the other of the same name.
    private func chooseNewer(of stream: KeptStream, _ place: SharedStreamPlace) -> Bool {
        guard let theirs = sharing?.log.readLog(place.id, 0..<place.length) else {
            return reportUnreadable(stream.log.name, place)
        }
        if let first = RecordFrame.records(in: theirs).records.first, let log = StreamLog(first),
            log.createdAt < stream.log.createdAt
        {
            return removeThere(stream.log.name, place) && writeBack(stream, from: 0)
        }
        return copyFromRedis(stream.log.name, at: place)
    }

    func removeThere(_ name: StreamName, _ place: SharedStreamPlace) -> Bool {
        sharing?.log.writeChanges(
            [SharedStreamChange(.remove, name: name.text, id: place.id, before: .any)], isReturned: true) != nil
    }

    /// Two hubs acknowledged different bytes at the same place. A reader of the one must not be shown the other.
    private func dropForked(_ stream: KeptStream, _ place: SharedStreamPlace) -> Bool {
        setup.logger.error(
            """
            The stream \(stream.log.name.text) was written by two sides while Redis was split, and is deleted: \
            neither side has all of it.
            """
        )
        figures.shared?.forked += 1
        let name = stream.log.name
        sharing?.noteStream(removed: place.id)
        removeStream(stream)
        return removeThere(name, place)
    }

    /// Writes back what Redis lacks of a stream.
    ///
    /// - Returns: false if Redis cannot be reached.
    private func writeBack(_ stream: KeptStream, from length: Int) -> Bool {
        if let ending = stream.log.ending, isOld(ending, of: stream, at: Self.unix) {
            removeStream(stream)
            return true
        }
        var length = length
        figures.shared?.returned += 1
        while length < stream.length {
            guard let rest = folder.readFile(stream.file, length..<stream.length) else {
                setup.logger.error(
                    "The stream \(stream.log.name.text) is lost in Redis, and its file lacks something: it is deleted.")
                removeStream(stream)
                return true
            }
            let piece = Array(rest.prefix(RecordFrame.wholeBytes(in: rest, most: StreamSharing.mostBytes)))
            guard !piece.isEmpty else { return true }
            let change = SharedStreamChange(
                .append, name: stream.log.name.text, id: stream.log.id.number,
                before: length == 0 ? .absent : .length(length), bytes: piece)
            guard let outcome = sharing?.log.writeChanges([change], isReturned: true)?.first else { return false }
            switch outcome {
            case .done: length += piece.count
            // Another hub writes it back, too.
            case .elsewhere(let place): return uniteStream(stream.log.name, at: place)
            }
        }
        return true
    }

    /// The bytes at the end of the common part in which two copies are compared.
    private static let comparedBytes = 1 << 20
}
