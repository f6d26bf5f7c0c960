import Glibc
import Logging
import Redis
import Streams
import Workers

/// The state of a worker's streams that are shared between hubs. Confined to its thread.
struct StreamSharing {
    let log: SharedStreamLog
    /// Everything in Redis is known here: what was there when the connection was opened, and what came since.
    var isSynced = false
    /// Until then, hubs write back what Redis lacks, and nothing else is accepted.
    var settlesAt = ContinuousClock.now
    /// The number of the epoch's writes that are known.
    var count = 0
    /// When to check next that nothing was missed, or to retry a failed opening.
    var nextBeat = ContinuousClock.now
    /// Requests about streams unknown here: Redis is asked whether these exist.
    var missing: [StreamName: [FileStreamService.Request]] = [:]
    /// The numbers of streams of which Redis has less than its index says: they cannot be served, while others go on.
    var damaged: Set<UInt64> = []
    /// Removed streams, in order: if a Redis that lost the removal has them again, they are removed again.
    private var removed: [UInt64] = []
    private var isRemoved: Set<UInt64> = []

    /// The limit of request bodies written by one call of Redis. A larger request is written alone.
    static let mostBytes = 1 << 20
    static let beatInterval = Duration.milliseconds(500)
    private static let mostRemoved = 10_000

    init(_ shared: SharedStreams, _ logger: Logger) { log = SharedStreamLog(shared, logger) }

    /// Fail closed: a hub that does not know everything writes and acknowledges nothing.
    var mayWrite: Bool { isSynced && log.epoch != nil && .now >= settlesAt }

    /// Something was missed: everything is looked up at once.
    mutating func lacksSomething() {
        guard isSynced else { return }
        isSynced = false
        nextBeat = .now
    }

    mutating func noteStream(removed id: UInt64) {
        guard isRemoved.insert(id).inserted else { return }
        removed.append(id)
        guard removed.count > 2 * Self.mostRemoved else { return }
        for id in removed.prefix(Self.mostRemoved) { isRemoved.remove(id) }
        removed.removeFirst(Self.mostRemoved)
    }

    func wasRemoved(_ id: UInt64) -> Bool { isRemoved.contains(id) }
}

/// Requests about shared streams: decided by what is known here, and written if that was complete.
extension StreamWorker {
    // MARK: Turns

    /// Waits for work or publications, and applies what other hubs did.
    func waitForWork(until deadline: ContinuousClock.Instant) {
        guard let log = sharing?.log, let mailbox else { return }
        var polled = [pollfd(fd: mailbox.descriptor, events: Int16(POLLIN), revents: 0)]
        log.preparePoll(into: &polled)
        var until = [deadline, log.deadline, log.isWhole ? sharing?.nextBeat : nil].compactMap { $0 }.min() ?? deadline
        // Some may have arrived while a reply was awaited.
        if log.hasNews { until = .now }
        _ = Glibc.poll(&polled, nfds_t(polled.count), Workers.milliseconds(until: until))
        log.makeProgress()
        receiveNews()
        goOnSharing()
        figures.shared?.isOpen = sharing?.mayWrite == true
    }

    // MARK: Writing

    /// Writes the batch, and answers its requests. Where another hub was faster, its changes are applied and the requests decided again.
    ///
    /// - Parameter isLast: refuses the requests instead, because others keep being faster.
    func commitShared(_ batch: [KeptStream], isLast: Bool) {
        guard let log = sharing?.log else { return }
        var seen: Set<ObjectIdentifier> = []
        let batch = batch.filter { $0.isTouched && seen.insert(ObjectIdentifier($0)).inserted }
        let missing = sharing?.missing.sorted { $0.key.text < $1.key.text } ?? []
        sharing?.missing = [:]
        guard !batch.isEmpty || !missing.isEmpty else { return }
        let changes =
            batch.map(\.change)
            + missing.map { SharedStreamChange(.append, name: $0.key.text, id: 0, before: .absent) }
        guard sharing?.mayWrite == true, let outcomes = log.writeChanges(changes) else {
            for stream in batch { for (_, request) in takeBack(stream) { request.answer(refusalAnswer(.unavailable)) } }
            for (_, requests) in missing { for request in requests { request.answer(refusalAnswer(.unavailable)) } }
            return
        }
        figures.writes += batch.count
        var late: [(name: StreamName, place: SharedStreamPlace?, requests: [FileStreamService.Request])] = []
        for (stream, outcome) in zip(batch, outcomes) {
            switch outcome {
            case .done: finishWrite(stream)
            case .elsewhere(let place):
                let asked = takeBack(stream)
                for case (.refused(let refusal)?, _) in asked { figures.refused[refusal.reason, default: 0] -= 1 }
                late.append((stream.log.name, place, asked.map(\.request)))
            }
        }
        for ((name, requests), outcome) in zip(missing, outcomes.dropFirst(batch.count)) {
            switch outcome {
            case .done: for request in requests { request.answer(refusalAnswer(.notFound)) }
            case .elsewhere(let place): late.append((name, place, requests))
            }
        }
        for (name, place, requests) in late {
            figures.shared?.conflicts += 1
            let isKnown = copyFromRedis(name, at: place)
            for request in requests {
                if isKnown, !isLast { performRequest(request) } else { request.answer(refusalAnswer(.unavailable)) }
            }
        }
    }

    private func finishWrite(_ stream: KeptStream) {
        let (added, before, ending) = (stream.added, stream.count.appends, stream.ends)
        let loops = stream.commitBatch(copyingTo: folder, isSynced: isSynced(stream))
        countWrite(stream, bytes: added, appends: stream.count.appends - before, ending: ending, telling: loops)
        stream.sendAnswers(isWritten: true)
        continueClose(with: stream)
    }

    /// Restores the stream as it was before the batch; a stream that was being created is dropped.
    private func takeBack(_ stream: KeptStream) -> [(answer: StreamAnswer?, request: FileStreamService.Request)] {
        growShare(stream, by: -stream.added)
        let asked = stream.undoBatch()
        if stream.length == 0 { unlistStream(stream) }
        return asked
    }

    /// Another hub may know the stream.
    func lookElsewhere(_ asked: FileStreamService.Request) {
        // The stream has expired, but is not yet removed.
        if streams[asked.name] != nil { return asked.answer(refusalAnswer(.notFound)) }
        sharing?.missing[asked.name, default: []].append(asked)
    }

    // MARK: Removing

    /// - Returns: false if it is unknown whether the stream is removed.
    func removeShared(_ name: StreamName) -> Bool {
        guard sharing?.mayWrite == true, let stream = streams[name] else { return sharing?.mayWrite == true }
        guard
            let outcomes = sharing?.log.writeChanges([
                SharedStreamChange(.remove, name: name.text, id: stream.log.id.number, before: .any)
            ])
        else { return false }
        sharing?.noteStream(removed: stream.log.id.number)
        // Another stream of this name has replaced it.
        if case .elsewhere(let place) = outcomes[0] { return copyFromRedis(name, at: place) && streams[name] == nil }
        return true
    }

    /// Removes the streams that are unchanged. Those that other hubs have extended are updated instead.
    ///
    /// - Parameter isSuperseded: whether a new generation follows: readers are then shown the rest of the old one.
    /// - Returns: false if the outcome is unknown.
    func removeShared(_ over: [KeptStream], isSuperseded: Bool = false) -> Bool {
        guard sharing?.mayWrite == true,
            let outcomes = sharing?.log.writeChanges(
                over.map {
                    SharedStreamChange(
                        isSuperseded ? .supersede : .remove, name: $0.log.name.text, id: $0.log.id.number,
                        before: .length($0.length))
                })
        else { return false }
        for (stream, outcome) in zip(over, outcomes) {
            switch outcome {
            case .done:
                sharing?.noteStream(removed: stream.log.id.number)
                guard streams[stream.log.name] === stream else { continue }
                if isSuperseded { supersedeStream(stream) } else { removeStream(stream) }
            case .elsewhere(let place): _ = copyFromRedis(stream.log.name, at: place)
            }
        }
        return true
    }

    // MARK: Changes that are not stored

    /// The stream was read. Other hubs are told if its lifetime depends on it.
    func noteUse(of stream: KeptStream, at now: Int64) {
        stream.usedAt = now
        guard sharing != nil, case .idle(let seconds) = stream.log.configuration.lifetime,
            now - stream.usedToldAt >= Int64(seconds) * 200
        else { return }
        stream.usedToldAt = now
        tellOthers(.used, of: stream)
    }

    func tellOthers(_ kind: SharedStreamChange.Kind, of stream: KeptStream) {
        sharing?.log.announceChange(
            SharedStreamChange(kind, name: stream.log.name.text, id: stream.log.id.number, before: .any))
    }
}
