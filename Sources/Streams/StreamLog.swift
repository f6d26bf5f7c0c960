import Wire

/// One stream's rules: what becomes of a request, and what follows from what was written down.
///
/// A request is decided, its record is written where it lasts, and then applied; a stream that is read from disk is the same records
/// applied. So nothing is answered that is not written, and a restart knows all that an answer said. Pure: time is passed in, in
/// milliseconds since 1970.
package struct StreamLog: Sendable, Equatable {
    package let id: StreamID
    package let name: StreamName
    package let configuration: StreamConfiguration
    package let createdAt: Int64
    /// The earliest offset that is kept.
    package private(set) var start = 0
    /// Behind its last byte.
    package private(set) var end = 0
    /// How many bytes are kept.
    package var kept: Int { end - start }
    package private(set) var ending: StreamEnding?
    private var producers: [Name: StreamCheckpoint.Producer] = [:]
    /// The greatest `Stream-Seq`. One for the stream, whoever writes.
    private var sequence: String?
    /// Whose close ended it.
    private var closer: ProducerStamp?
    /// An end that waits for its row.
    package private(set) var closing: Closing?
    private var attempts = 0

    package struct Closing: Sendable, Equatable {
        package let key: StreamCommitKey
        package let bytes: [UInt8]
        package let ending: StreamEnding
        let producer: ProducerStamp?
        let sequence: String?
    }

    /// How many producers one stream remembers: each is some bytes for as long as the stream is.
    private static let mostProducers = 1000

    package enum Decision: Sendable, Equatable {
        case refused(StreamRefusal)
        /// The same was sent before, and is there. The stamp is the producer's newest.
        case repeated(ProducerStamp?)
        case write(StreamRecord, stamp: ProducerStamp?)
    }

    /// Nil where the record is not the first of a stream.
    package init?(_ record: StreamRecord) {
        guard case .created(let id, let name, let configuration, let at) = record else { return nil }
        self.id = id
        self.name = name
        self.configuration = configuration
        createdAt = at
    }

    package private(set) var wasHeld = false

    /// Whether it is known when its producer is gone: one that named itself, or held a connection.
    package var hasProducer: Bool { wasHeld || !producers.isEmpty }

    package var producerCount: Int { producers.count }

    /// Up to so many of those who number their appends; who appended last comes first.
    package func newestProducers(limit: Int) -> [InspectedProducer] {
        var newest: [InspectedProducer] = []
        for (id, known) in producers {
            if newest.count == limit, let last = newest.last, known.end <= last.end { continue }
            let place = newest.firstIndex { $0.end < known.end } ?? newest.count
            newest.insert(
                InspectedProducer(id: id.text, epoch: known.epoch, sequence: known.sequence, end: known.end), at: place)
            if newest.count > limit { newest.removeLast() }
        }
        return newest
    }

    package func snapshot(_ status: StreamStatus) -> StreamSnapshot {
        StreamSnapshot(
            id: id, name: name, configuration: configuration, start: start, end: end,
            status: ending.map { .ended($0) } ?? status)
    }

    // MARK: Decisions

    /// - Parameters:
    ///   - limit: bytes that may be kept of the stream.
    ///   - isWindow: older bytes make room, so only one append may not have more.
    ///   - now: milliseconds since 1970.
    package func decide(_ append: StreamAppend, limit: Int, isWindow: Bool = false, at now: Int64) -> Decision {
        if let meant = append.generation, meant != id { return .refused(.otherGeneration(snapshot(.open))) }
        // A zombie is told so also of a stream that has ended; then the end comes before all else (section 5.2).
        if let stamp = append.producer, let known = producers[stamp.id], stamp.epoch < known.epoch {
            return .refused(.staleEpoch(current: known.epoch))
        }
        if let ending { return decide(append, behind: ending) }
        if append.body.isEmpty, !append.closes { return .refused(.emptyBody) }
        if !append.body.isEmpty, let type = append.contentType, !configuration.takes(type) {
            return .refused(.contentType(expected: configuration.contentType))
        }
        if let stamp = append.producer {
            switch order(of: stamp, at: now) {
            case .next: break
            case .repeated(let newest): return .repeated(newest)
            case .refused(let refusal): return .refused(refusal)
            }
        }
        if let text = append.sequence, let sequence, !sequence.utf8.lexicographicallyPrecedes(text.utf8) {
            return .refused(.sequenceRegression)
        }
        let bytes: [UInt8]
        do throws(StreamRefusal) {
            bytes = try configuration.content.stored(append.body, isFirst: false)
        } catch {
            return .refused(error)
        }
        guard (isWindow ? 0 : kept) + bytes.count <= limit else { return .refused(.streamTooLarge(limit: limit)) }
        let ending = append.closes ? StreamEnding(.complete, at: now) : nil
        return .write(
            .appended(bytes, ending, producer: append.producer, sequence: append.sequence), stamp: append.producer)
    }

    /// A close is repeated by whoever closed, and by everybody who brings nothing but a close.
    private func decide(_ append: StreamAppend, behind ending: StreamEnding) -> Decision {
        if let stamp = append.producer, stamp == closer { return .repeated(stamp) }
        if append.closes, append.body.isEmpty, append.producer == nil, ending.reason == .complete {
            return .repeated(nil)
        }
        return .refused(.ended(snapshot(.open)))
    }

    private enum Order {
        case next
        case repeated(ProducerStamp)
        case refused(StreamRefusal)
    }

    /// How far an epoch may lead, so that whoever is fenced by it can always begin a later one: beyond the last, or beyond the
    /// microseconds since 1970, as some take the time for it.
    private static let (longestStep, longestLead) = (1_000_000, 86_400_000_000)

    private func latestEpoch(after last: Int, at now: Int64) -> Int {
        min(ProducerStamp.largest, max(last &+ Self.longestStep, Int(now) &* 1000 &+ Self.longestLead))
    }

    private func order(of stamp: ProducerStamp, at now: Int64) -> Order {
        let last = producers[stamp.id]?.epoch ?? 0
        let latest = latestEpoch(after: last, at: now)
        if stamp.epoch > last, stamp.epoch > latest { return .refused(.epochTooFar(most: latest)) }
        guard let known = producers[stamp.id] else {
            guard producers.count < Self.mostProducers else {
                return .refused(.tooManyProducers)
            }
            return stamp.sequence == 0 ? .next : .refused(.sequenceGap(expected: 0, received: stamp.sequence))
        }
        if stamp.epoch > known.epoch {
            return stamp.sequence == 0 ? .next : .refused(.epochMustBeginAtZero)
        }
        if stamp.sequence <= known.sequence {
            return .repeated(ProducerStamp(id: stamp.id, epoch: known.epoch, sequence: known.sequence))
        }
        guard stamp.sequence == known.sequence &+ 1 else {
            return .refused(.sequenceGap(expected: known.sequence &+ 1, received: stamp.sequence))
        }
        return .next
    }

    // MARK: What was written

    package mutating func apply(_ record: StreamRecord) {
        switch record {
        case .created: break
        case .continued(let checkpoint):
            (start, end) = (checkpoint.start, checkpoint.start)
            (producers, sequence) = (checkpoint.producers, checkpoint.sequence)
            (wasHeld, attempts) = (checkpoint.wasHeld, checkpoint.attempts)
        case .held: wasHeld = true
        case .closing(let bytes, let ending, let producer, let sequence):
            attempts += 1
            closing = Closing(
                key: StreamCommitKey(id: id, attempt: attempts), bytes: bytes, ending: ending, producer: producer,
                sequence: sequence)
        case .closed(let row):
            guard let closing else { break }
            self.closing = nil
            var ending = closing.ending
            ending.row = row
            apply(.appended(closing.bytes, ending, producer: closing.producer, sequence: closing.sequence))
        case .reopened: closing = nil
        case .appended(let bytes, let ending, let producer, let sequence):
            end += bytes.count
            self.ending = ending ?? self.ending
            if let producer {
                producers[producer.id] = .init(epoch: producer.epoch, sequence: producer.sequence, end: end)
            }
            if ending != nil { closer = producer }
            if ending?.reason == .aborted { fenceProducers() }
            self.sequence = sequence ?? self.sequence
        case .ended(let ending):
            self.ending = self.ending ?? ending
            if ending.reason == .aborted { fenceProducers() }
        }
    }

    /// What a file begins with that does not keep what stands before an offset.
    package func checkpoint(at start: Int) -> StreamCheckpoint {
        StreamCheckpoint(
            start: start, producers: producers, sequence: sequence, wasHeld: wasHeld, attempts: attempts)
    }

    /// What stands before an offset is not kept any more.
    package mutating func drop(before start: Int) { self.start = max(self.start, start) }

    /// Whoever was silent for too long begins a new epoch.
    private mutating func fenceProducers() {
        for id in producers.keys { producers[id]?.epoch &+= 1 }
    }
}
