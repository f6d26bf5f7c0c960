import Redis
import Streams

/// The changes of other hubs to shared streams.
extension StreamWorker {
    /// Applies the publications since the last turn.
    func receiveNews() {
        guard let sharing else { return }
        for said in sharing.log.takeNews() {
            guard self.sharing?.isSynced == true, said.epoch == sharing.log.epoch else { continue }
            if let number = said.count {
                // The last look-up included everything before.
                guard let known = self.sharing?.count, number > known else { continue }
                if number > known + 1 { self.sharing?.lacksSomething() }
                self.sharing?.count = number
            }
            guard said.process != sharing.log.process else { continue }
            for change in said.changes { applyChange(change) }
        }
        figures.shared?.damaged += sharing.log.takeUnreadable()
        if sharing.log.hasLost { self.sharing?.lacksSomething() }
    }

    private func applyChange(_ change: SharedStreamChange) {
        guard let name = StreamName(change.name) else { return }
        let stream = streams[name].flatMap { $0.log.id.number == change.id ? $0 : nil }
        switch change.kind {
        case .append:
            guard let stream, case .length(let length) = change.before else {
                if change.before == .absent, streams[name] == nil, !change.bytes.isEmpty,
                    sharing?.wasRemoved(change.id) == false
                {
                    addForeign(change.bytes, as: change.id, named: name)
                } else if stream == nil {
                    lookUp(name)
                }
                return
            }
            if length == stream.length {
                takeIn(change.bytes, stream)
            } else if length + change.bytes.count > stream.length {
                lookUp(name)
            }
        case .remove:
            guard let stream else { return }
            sharing?.noteStream(removed: change.id)
            removeStream(stream)
        case .supersede:
            guard let stream else { return }
            sharing?.noteStream(removed: change.id)
            supersedeStream(stream)
        case .heard: if let stream { updateStatus(stream) { _ = $0.producerHeard(at: Self.monotonic) } }
        case .broken: if let stream { updateStatus(stream) { $0.brokeElsewhere(at: Self.monotonic) } }
        case .used: stream?.usedAt = Self.unix
        }
    }

    private func updateStatus(_ stream: KeptStream, after change: (inout StreamLease) -> Void) {
        change(&stream.lease)
        notifyLoops(stream.publishStatus(), of: stream.buffer)
    }

    private func lookUp(_ name: StreamName) {
        guard let place = sharing?.log.readPlace(of: name.text), copyFromRedis(name, at: place) else {
            sharing?.lacksSomething()
            return
        }
    }

    /// Copies the state in Redis, within one epoch.
    ///
    /// - Returns: false if it cannot be read.
    func copyFromRedis(_ name: StreamName, at place: SharedStreamPlace?) -> Bool {
        if let stream = streams[name] {
            if let place, stream.log.id.number == place.id, stream.length > 0, stream.length <= place.length {
                guard stream.length < place.length else { return true }
                guard let bytes = sharing?.log.readLog(place.id, stream.length..<place.length) else {
                    return reportUnreadable(name, place)
                }
                takeIn(bytes, stream)
                return true
            }
            removeStream(stream)
        }
        guard let place else { return true }
        // A hub that had not heard of the removal wrote the stream back to a Redis that had lost both.
        if sharing?.wasRemoved(place.id) == true { return removeThere(name, place) }
        guard let bytes = sharing?.log.readLog(place.id, 0..<place.length) else { return reportUnreadable(name, place) }
        addForeign(bytes, as: place.id, named: name)
        return true
    }

    /// - Returns: always false, for callers to pass on.
    func reportUnreadable(_ name: StreamName, _ place: SharedStreamPlace) -> Bool {
        if sharing?.log.wasShort == true {
            sharing?.damaged.insert(place.id)
            reportDamage(name)
        }
        return false
    }

    /// Appends what another hub wrote to a stream, starting at the length known here.
    private func takeIn(_ frames: [UInt8], _ stream: KeptStream) {
        let (records, end) = RecordFrame.records(in: frames)
        guard end == frames.count, stream.length > 0 else { return reportDamage(stream.log.name) }
        let before = stream.log
        let loops = stream.takeIn(records[...], frames, folder)
        growShare(stream, by: stream.log.end - before.end)
        // A producer that appends at another hub is present.
        if records.contains(where: \.isOfProducer) { _ = stream.lease.producerHeard(at: Self.monotonic) }
        stream.usedAt = Self.unix
        if stream.log.closing != nil, stream.log.closing != before.closing { closesElsewhere(stream) }
        if stream.log.closing == nil, before.closing != nil { closedElsewhere(stream) }
        notifyLoops(loops + stream.publishStatus(), of: stream.buffer)
    }

    /// Adds a stream that another hub created.
    func addForeign(_ frames: [UInt8], as id: UInt64, named name: StreamName) {
        let (records, end) = RecordFrame.records(in: frames)
        guard end == frames.count, let first = records.first, let log = StreamLog(first), log.id.number == id,
            log.name == name
        else { return reportDamage(name) }
        let lease = StreamLease(log.configuration, at: Self.monotonic)
        let stream = KeptStream(log, folder.file(of: log.id), lease, at: Self.unix)
        _ = stream.takeIn(records.dropFirst(), frames, folder)
        if stream.log.closing != nil { closesElsewhere(stream) }
        listStream(stream)
        notifyLoops(index.addBuffer(stream.buffer), of: stream.buffer)
    }

    /// Only hubs write there, so another program has damaged the stream. Its readers are told that it is gone.
    private func reportDamage(_ name: StreamName) {
        figures.shared?.damaged += 1
        setup.logger.error("The stream \(name.text) in Redis is damaged, and cannot be served: delete it.")
        if let stream = streams[name] { removeStream(stream) }
    }
}

extension StreamRecord {
    /// Whether the record shows that a producer is present.
    fileprivate var isOfProducer: Bool {
        switch self {
        case .created, .appended, .held, .closing: true
        case .continued, .closed, .reopened, .ended: false
        }
    }
}
