import Glibc
import Logging
import Redis
import Streams
import Workers

/// What a worker knows of the streams that hubs share. Confined to its thread.
struct StreamSharing {
    let log: SharedStreamLog
    /// All that was there when the connection was opened is here, and what came since.
    var isSynced = false
    /// Until then hubs write back what Redis lacks, and nothing else is taken.
    var settlesAt = ContinuousClock.now
    /// Up to which write of the epoch all is known.
    var count = 0
    /// When it is looked up next whether all was heard, and when an opening that failed is tried again.
    var nextBeat = ContinuousClock.now
    /// What was asked of streams that are not known here: Redis is asked whether there are any.
    var missing: [StreamName: [FileStreamService.Request]] = [:]
    /// Streams of which Redis has less than its index says, by their numbers: they cannot be served, and others go on.
    var damaged: Set<UInt64> = []
    /// Streams that were removed, in turn: should a Redis that lost that have them again, they are removed again.
    private var removed: [UInt64] = []
    private var isRemoved: Set<UInt64> = []

    /// Of the bodies of requests that are written by one call of Redis. A request that has more is written alone.
    static let mostBytes = 1 << 20
    static let beatInterval = Duration.milliseconds(500)
    private static let mostRemoved = 10_000

    init(_ shared: SharedStreams, _ logger: Logger) { log = SharedStreamLog(shared, logger) }

    /// Fail closed: a hub that does not know all writes nothing, and answers for nothing.
    var mayWrite: Bool { isSynced && log.epoch != nil && .now >= settlesAt }

    /// Something was missed: all is looked up at once.
    mutating func lacksSomething() {
        guard isSynced else { return }
        isSynced = false
        nextBeat = .now
    }

    mutating func note(removed id: UInt64) {
        guard isRemoved.insert(id).inserted else { return }
        removed.append(id)
        guard removed.count > 2 * Self.mostRemoved else { return }
        for id in removed.prefix(Self.mostRemoved) { isRemoved.remove(id) }
        removed.removeFirst(Self.mostRemoved)
    }

    func wasRemoved(_ id: UInt64) -> Bool { isRemoved.contains(id) }
}

/// Requests about streams that hubs share: decided by what is known here, and written if that was all.
extension StreamWorker {
    // MARK: Turns

    /// Waits for work or for news, and takes in what other hubs did.
    func share(until deadline: ContinuousClock.Instant) {
        guard let log = sharing?.log, let mailbox else { return }
        var polled = [pollfd(fd: mailbox.descriptor, events: Int16(POLLIN), revents: 0)]
        log.poll(into: &polled)
        var until = [deadline, log.deadline, log.isWhole ? sharing?.nextBeat : nil].compactMap { $0 }.min() ?? deadline
        // Some may have come while an answer was waited for.
        if log.hasNews { until = .now }
        _ = Glibc.poll(&polled, nfds_t(polled.count), Workers.milliseconds(until: until))
        log.advance()
        hearOthers()
        goOnSharing()
        figures.shared?.isOpen = sharing?.mayWrite == true
    }

    // MARK: Writing

    /// Has the batch written, and answers whoever asked for it. What another hub was faster with is taken in, and whoever asked is
    /// decided upon anew.
    ///
    /// - Parameter isLast: they are refused instead, as others are faster all the time.
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
        guard sharing?.mayWrite == true, let outcomes = log.write(changes) else {
            for stream in batch { for (_, request) in takeBack(stream) { request.answer(refused(.unavailable)) } }
            for (_, requests) in missing { for request in requests { request.answer(refused(.unavailable)) } }
            return
        }
        figures.writes += batch.count
        var late: [(name: StreamName, place: SharedStreamPlace?, requests: [FileStreamService.Request])] = []
        for (stream, outcome) in zip(batch, outcomes) {
            switch outcome {
            case .done: isWritten(stream)
            case .elsewhere(let place):
                let asked = takeBack(stream)
                for case (.refused(let refusal)?, _) in asked { figures.refused[refusal.reason, default: 0] -= 1 }
                late.append((stream.log.name, place, asked.map(\.request)))
            }
        }
        for ((name, requests), outcome) in zip(missing, outcomes.dropFirst(batch.count)) {
            switch outcome {
            case .done: for request in requests { request.answer(refused(.notFound)) }
            case .elsewhere(let place): late.append((name, place, requests))
            }
        }
        for (name, place, requests) in late {
            figures.shared?.conflicts += 1
            let isKnown = adopt(name, at: place)
            for request in requests {
                if isKnown, !isLast { perform(request) } else { request.answer(refused(.unavailable)) }
            }
        }
    }

    private func isWritten(_ stream: KeptStream) {
        let (added, before, ending) = (stream.added, stream.count.appends, stream.ends)
        let loops = stream.commit(copyingTo: folder, isSynced: isSynced(stream))
        wrote(stream, bytes: added, appends: stream.count.appends - before, ending: ending, telling: loops)
        stream.say(isWritten: true)
        goOn(with: stream)
    }

    /// The stream is as it was before the batch; one that was being made is none.
    private func takeBack(_ stream: KeptStream) -> [(answer: StreamAnswer?, request: FileStreamService.Request)] {
        grow(stream, by: -stream.added)
        let asked = stream.undo()
        if stream.length == 0 { leave(stream) }
        return asked
    }

    /// Another hub may know the stream.
    func lookElsewhere(_ asked: FileStreamService.Request) {
        // It is over, and not removed yet.
        if streams[asked.name] != nil { return asked.answer(refused(.notFound)) }
        sharing?.missing[asked.name, default: []].append(asked)
    }

    // MARK: Removing

    /// - Returns: false where it is not known whether it is removed.
    func removeShared(_ name: StreamName) -> Bool {
        guard sharing?.mayWrite == true, let stream = streams[name] else { return sharing?.mayWrite == true }
        guard
            let outcomes = sharing?.log.write([
                SharedStreamChange(.remove, name: name.text, id: stream.log.id.number, before: .any)
            ])
        else { return false }
        sharing?.note(removed: stream.log.id.number)
        // Another of this name has taken its place.
        if case .elsewhere(let place) = outcomes[0] { return adopt(name, at: place) && streams[name] == nil }
        return true
    }

    /// Removes those that are as they are known here. Those that went on are taken in.
    ///
    /// - Parameter isSuperseded: whether a new generation follows: their readers are shown the rest of them.
    /// - Returns: false where nothing is known of it.
    func removeShared(_ over: [KeptStream], isSuperseded: Bool = false) -> Bool {
        guard sharing?.mayWrite == true,
            let outcomes = sharing?.log.write(
                over.map {
                    SharedStreamChange(
                        isSuperseded ? .supersede : .remove, name: $0.log.name.text, id: $0.log.id.number,
                        before: .length($0.length))
                })
        else { return false }
        for (stream, outcome) in zip(over, outcomes) {
            switch outcome {
            case .done:
                sharing?.note(removed: stream.log.id.number)
                guard streams[stream.log.name] === stream else { continue }
                if isSuperseded { supersede(stream) } else { remove(stream) }
            case .elsewhere(let place): _ = adopt(stream.log.name, at: place)
            }
        }
        return true
    }

    // MARK: What is not written

    /// Somebody read it. Other hubs are told where its lifetime goes by that.
    func noteUse(of stream: KeptStream, at now: Int64) {
        stream.usedAt = now
        guard sharing != nil, case .idle(let seconds) = stream.log.configuration.lifetime,
            now - stream.usedToldAt >= Int64(seconds) * 200
        else { return }
        stream.usedToldAt = now
        tellOthers(.used, of: stream)
    }

    func tellOthers(_ kind: SharedStreamChange.Kind, of stream: KeptStream) {
        sharing?.log.tell(
            SharedStreamChange(kind, name: stream.log.name.text, id: stream.log.id.number, before: .any))
    }
}
